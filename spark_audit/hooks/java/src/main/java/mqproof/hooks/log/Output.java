package mqproof.hooks.log;

import java.io.Closeable;
import java.io.IOException;
import java.util.List;

/** Where rows go. Only the writer's thread calls it. */
public interface Output extends Closeable {
    /** Returns the node that writes the rows. */
    String node();

    /** Returns the number of the next row. */
    long seqNext();

    /** Returns the time in microseconds from which rows of an earlier process may be missing, or -1. */
    long missingSince();

    /**
     * Writes rows, which have the numbers from seqNext() on. If it throws, none of them counts as written.
     *
     * @param lastTs the time of the last of the rows, in microseconds
     */
    void write(List<byte[]> rows, long lastTs) throws IOException;

    /** Ends a file that is old enough. */
    void rest() throws IOException;

    /** Records that all rows are written: from now on, each row is written before record() returns. */
    void complete() throws IOException;
}
