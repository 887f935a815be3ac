// Four workers share a lock on Atomics.wait: three wait for it, the fourth computes 4 ms under it.
// The main thread idles in its event loop. Nobody who waits for the lock waits for work.
import { Worker, isMainThread, workerData } from "node:worker_threads";

function lock(cell) {
    while (Atomics.exchange(cell, 0, 1) !== 0) Atomics.wait(cell, 0, 1);
}
function unlock(cell) {
    Atomics.store(cell, 0, 0);
    Atomics.notify(cell, 0, 1);
}
const spin = (ms) => { for (const end = performance.now() + ms; performance.now() < end;); };

if (isMainThread) {
    const shared = new SharedArrayBuffer(16);
    const seconds = Number(process.argv[2] ?? 7);
    for (let i = 0; i < 4; i++) new Worker(new URL(import.meta.url), { workerData: shared });
    setTimeout(() => {
        const [, waitedMs, heldMs] = new Int32Array(shared);
        const threads = (waitedMs / seconds / 1e3).toFixed(2);
        console.log(`truth: held ${(heldMs / seconds / 10).toFixed(0)}%, queue ${threads}`);
        process.exit(0);
    }, seconds * 1e3);
} else {
    const cell = new Int32Array(workerData);
    for (;;) {
        const asked = performance.now();
        lock(cell);
        const got = performance.now();
        spin(4);
        Atomics.add(cell, 1, Math.round(got - asked));
        Atomics.add(cell, 2, Math.round(performance.now() - got));
        unlock(cell);
        spin(0.1);
    }
}
