import java.util.List;
import peers.Group;
import peers.Row;

/** The pool of A. Sukhovitsky's article, whose program is written in Kotlin. */
public final class Sukhovitsky implements Group {
    @Override
    public List<Row> rows() {
        return List.of(new Row.Pool("java-reentrant-fair", System.getProperty("java.version"),
                "ReentrantLock(true) under a fixed thread pool; Java stands in for Kotlin"));
    }
}
