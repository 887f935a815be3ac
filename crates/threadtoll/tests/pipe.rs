use std::thread;
use threadtoll::pipe;
use threadtoll::wait::*;
#[test]
fn streams() {
    fn run<W: Wait>(w: W, cap: Option<usize>, n: u64) {
        let o = pipe::Options::new().wait(w);
        let (mut s, mut r) = match cap {
            Some(c) => o.bounded::<u64>(c),
            None => o.unbounded(),
        };
        let t = thread::spawn(move || {
            for i in 0..n {
                s.send(i).unwrap();
            }
        });
        for i in 0..n {
            assert_eq!(r.recv(), Ok(i));
        }
        assert!(r.recv().is_err());
        t.join().unwrap();
    }
    for cap in [Some(1), Some(2), Some(7), Some(8), Some(100), Some(1024), None] {
        run(Adaptive, cap, 200_000);
        run(Park, cap, 2_000);
        run(Spin, cap, 20_000);
        run(SpinYield, cap, 200_000);
    }
}
#[test]
fn bursts() {
    let (mut s, mut r) = pipe::unbounded::<u64>();
    for n in [10u64, 1000, 10_000, 1_000_000, 5, 3000, 100_000] {
        for i in 0..n {
            s.send(i).unwrap();
        }
        assert_eq!(s.len(), n as usize);
        assert_eq!(r.len(), n as usize);
        println!("{:?} high {}", s.memory(), s.high_water_mark());
        for i in 0..n {
            assert_eq!(r.try_recv(), Ok(i));
        }
        assert!(r.is_empty());
        assert!(r.try_recv().is_err());
    }
    let v: Vec<u64> = (0..5000).collect();
    s.send_slice(&v).unwrap();
    s.send_slice(&v[..20]).unwrap();
    let mut got = vec![];
    let mut sizes = vec![];
    while let Ok(b) = r.try_recv_batch() {
        sizes.push(b.len());
        got.extend_from_slice(&b);
    }
    assert_eq!(got[..5000], v);
    println!("{sizes:?}");
}
