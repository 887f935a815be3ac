use std::sync::Arc;
use std::sync::atomic::*;
use threadtoll::pipe;
struct Counted(Arc<AtomicUsize>);
impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
#[test]
fn leave_race() {
    for round in 0..20000u32 {
        let n = Arc::new(AtomicUsize::new(0));
        let (mut s, r) = pipe::unbounded();
        let m = n.clone();
        let go = Arc::new(AtomicBool::new(false));
        let g = go.clone();
        let t = std::thread::spawn(move || {
            while !g.load(Ordering::Relaxed) {}
            let mut made = 0;
            for _ in 0..200 {
                made += 1;
                if s.send(Counted(m.clone())).is_err() {
                    break;
                }
            }
            made
        });
        go.store(true, Ordering::Relaxed);
        for _ in 0..round % 300 {
            std::hint::spin_loop();
        }
        drop(r);
        let made = t.join().unwrap();
        assert_eq!(made, n.load(Ordering::Relaxed), "round {round}");
    }
}
#[test]
fn claims() {
    let (mut s, mut r) = pipe::bounded::<u8>(1024);
    for i in 0..16u8 {
        let mut c = s.claim(124).unwrap();
        let k = c.room().len();
        let n = k.min(61);
        for p in &mut c.room()[..n] {
            p.write(i);
        }
        unsafe { c.send(n) };
    }
    println!("{}", s.len());
    let mut got = vec![];
    while let Ok(b) = r.try_recv() {
        got.push(b);
    }
    println!("{got:?}");
}

#[test]
fn claim_scribbles() {
    let (mut s, mut r) = pipe::bounded::<u8>(1024);
    let mut c = s.claim(124).unwrap();
    for p in c.room() {
        p.write(9);
    }
    drop(c);
    for i in 0..200u8 {
        s.send(i).unwrap();
    }
    for i in 0..200u8 {
        assert_eq!(r.try_recv(), Ok(i));
    }
}
