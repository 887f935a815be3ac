# Four threads of Ruby compute in crunch. Only the one that holds the interpreter's lock (the GVL)
# runs, and the other three wait for that lock; they do not wait for work.
seconds = ARGV.fetch(0, 7).to_f

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
def crunch = (1..20_000).reduce { |product, factor| product * factor % 1_000_003 }

begun = now
ran = Array.new(4, 0.0)
threads = ran.each_index.map do |number|
  Thread.new do
    while now - begun < seconds
      crunch
      ran[number] = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
    end
  end
end
threads.each(&:join)
printf "truth: %.2f of 4 threads ran on average\n", ran.sum / (now - begun)
