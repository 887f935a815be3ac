use crate::{Cell, Layout, LockSubject, Origin, Pause, Spread, Work};

impl Cell {
    /// Name of the cell in tables: its subject, and the parameters that distinguish the cell within
    /// a placement, such as `atomic-rmw, shared line, pause`.
    ///
    /// Payloads of 8 bytes, own cache lines and the absence of a pause hint are not mentioned.
    pub fn label(&self) -> String {
        let mut label = self.name().to_string();
        if let Some(queue) = self.queue() {
            if queue.origin != Origin::Raw {
                label.push_str(&format!(", {}", queue.wait));
            }
            if let Some(capacity) = queue.capacity {
                label.push_str(&format!(", capacity {capacity}"));
            }
            match (queue.origin, queue.batch) {
                (_, 0 | 1) => {}
                (Origin::Raw, words) => label.push_str(&format!(", blocks of {words} words")),
                (_, batch) => label.push_str(&format!(", batches of {batch}")),
            }
            if queue.senders != 1 {
                label.push_str(&format!(", {} senders", queue.senders));
            }
            label.push_str(&queue.load.label());
        }
        if let Some(lock) = self.lock() {
            label.push_str(&lock_label(lock));
        }
        if self.line == Some(Layout::Shared) {
            label.push_str(", shared line");
        }
        if self.pause == Some(Pause::On) {
            label.push_str(", pause");
        }
        if self.keep_awake {
            label.push_str(", CPUs awake");
        }
        if self.payload_bytes != 8 && self.lock().is_none() {
            label.push_str(&format!(", {} B", self.payload_bytes));
        }
        if let Some(neighbour) = self.neighbour {
            label.push_str(&format!(", beside {}", neighbour.threads()));
        }
        label
    }
}

/// Parameters of a lock's cell, such as `, 2 threads, hold 3333 ns, think 30000 ns`.
fn lock_label(lock: &LockSubject) -> String {
    let mut label = match lock.threads {
        1 => ", 1 thread".to_string(),
        threads => format!(", {threads} threads"),
    };
    label.push_str(&format!(", hold {} ns, think {} ns", lock.hold_ns, lock.think_ns));
    if lock.spread == Spread::Fixed {
        label.push_str(", fixed");
    }
    if lock.work == Work::Sleep {
        label.push_str(", asleep");
    }
    if let Some(share) = lock.read_share {
        label.push_str(&format!(", {}% reads", share.value() * 100.0));
    }
    if let Some(tasks) = lock.tasks {
        label.push_str(&format!(", {tasks} tasks"));
    }
    if let Some(overload) = &lock.overload {
        label.push_str(&overload.label());
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::tests::stream;
    use crate::{Class, Neighbour, Placement, Relation, Subject};

    #[test]
    fn labels_mention_only_what_is_unusual() {
        let mut cell = Cell {
            subject: Subject::mechanism("atomic-rmw", Class::Spin),
            placement: Placement::Pinned,
            cpus: vec![0, 1],
            relation: Relation::SameLlc,
            payload_bytes: 8,
            line: Some(Layout::Own),
            pause: Some(Pause::Off),
            keep_awake: false,
            neighbour: None,
            built: None,
        };
        assert_eq!(cell.label(), "atomic-rmw");
        cell.line = Some(Layout::Shared);
        cell.pause = Some(Pause::On);
        cell.keep_awake = true;
        cell.payload_bytes = 4096;
        cell.neighbour = Some(Neighbour::Churn);
        assert_eq!(
            cell.label(),
            "atomic-rmw, shared line, pause, CPUs awake, 4096 B, beside churn"
        );
    }

    #[test]
    fn queues_say_how_they_are_used() {
        assert_eq!(stream(1).label(), "funnel, spin-yield, batches of 256");
        assert_eq!(stream(2).label(), "funnel, spin-yield, batches of 256, 2 senders");
        let mut bounded = stream(1);
        if let Subject::Queue(queue) = &mut bounded.subject {
            *queue = crate::QueueSubject { capacity: Some(1024), batch: 1, ..queue.clone() };
        }
        assert_eq!(bounded.label(), "funnel, spin-yield, capacity 1024");
    }
}
