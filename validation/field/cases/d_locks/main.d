// By the second argument. mutex: core.sync.mutex held 99%, asleep 3 ms in saveGame, queue nearly 3.
// monitor: the monitor of a synchronized class, the same. compute: six threads compute, with no
// lock.
import core.atomic, core.stdc.stdlib, core.sync.mutex, core.thread, core.time, std.conv, std.stdio;

__gshared Mutex gameMutex;
shared Game game;
shared long waited, held, steps;

pragma(inline, false) void saveGame() {
    immutable asked = MonoTime.currTime;
    gameMutex.lock();
    immutable got = MonoTime.currTime;
    Thread.sleep(3.msecs);
    account(asked, got);
    gameMutex.unlock();
}

void account(MonoTime asked, MonoTime got) {
    atomicOp!"+="(waited, (got - asked).total!"nsecs");
    atomicOp!"+="(held, (MonoTime.currTime - got).total!"nsecs");
}

synchronized class Game {
    pragma(inline, false) void advance(MonoTime asked) {
        immutable got = MonoTime.currTime;
        Thread.sleep(3.msecs);
        account(asked, got);
    }
}

pragma(inline, false) void simulate() {
    long sum = 1;
    foreach (i; 0 .. 1_000_000) sum = sum * 6364136223846793005 + i;
    atomicOp!"+="(steps, 1 + (sum & 1));
}

void pause() {
    immutable end = MonoTime.currTime + 30.usecs;
    while (MonoTime.currTime < end) {}
}

void main(string[] arguments) {
    immutable begun = MonoTime.currTime, what = arguments[2];
    gameMutex = new Mutex;
    game = new shared Game;
    foreach (i; 0 .. what == "compute" ? 6 : 4) {
        new Thread({
            while (true) {
                if (what == "compute") simulate();
                else if (what == "mutex") { saveGame(); pause(); }
                else { game.advance(MonoTime.currTime); pause(); }
            }
        }).start();
    }
    Thread.sleep((arguments[1].to!double * 1000).to!long.msecs);
    immutable all = (MonoTime.currTime - begun).total!"nsecs";
    writefln("truth: %s held %.1f%%, queue %.2f, %d steps", what, held * 100.0 / all,
        waited * 1.0 / all, steps);
    stdout.flush();
    _Exit(0);
}
