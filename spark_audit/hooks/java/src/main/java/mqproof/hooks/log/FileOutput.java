package mqproof.hooks.log;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Rotating NDJSON files of one node in a directory.
 *
 * NODE.part is being written; a finished file is NODE-SEQ.ndjson, where SEQ is the number of its first row. NODE.state
 * has the number of the next row and says whether the process has ended with all rows written. NODE.lock keeps another
 * process from using the name: that one takes NODE-2.
 */
public final class FileOutput implements Output {
    private static final int NAMES_MAX = 1_000;

    private final Path directory;
    private final String node;
    private final FileChannel lockFile;
    private final long fileBytes;
    private final long fileMillis;
    private final long totalBytes;
    private final long missingSince;
    private FileChannel part;
    private long partBytes;
    private long partSeq;
    private long partSince;
    private long seqNext;
    private long lastTs;
    private boolean isComplete;

    /** Opens the files of the node, or of NODE-2, NODE-3, ... if another process writes those. */
    public static FileOutput open(Settings settings) throws IOException {
        Path directory = java.nio.file.Paths.get(settings.directory());
        Files.createDirectories(directory);
        String base = settings.node().replaceAll("[^A-Za-z0-9._-]", "_");
        for (int number = 1; number <= NAMES_MAX; number++) {
            String node = number == 1 ? base : base + "-" + number;
            FileChannel lockFile = locked(directory.resolve(node + ".lock"));
            if (lockFile != null) {
                return new FileOutput(directory, node, lockFile, settings);
            }
        }
        throw new IOException(directory + ": " + NAMES_MAX + " processes have the node " + base);
    }

    /** Opens the files of the node; returns null if another process writes them. */
    static FileOutput openExactly(Settings settings) throws IOException {
        Path directory = java.nio.file.Paths.get(settings.directory());
        FileChannel lockFile = locked(directory.resolve(settings.node() + ".lock"));
        return lockFile == null ? null : new FileOutput(directory, settings.node(), lockFile, settings);
    }

    private static FileChannel locked(Path path) throws IOException {
        FileChannel file = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
        try {
            FileLock lock = file.tryLock();
            if (lock != null) {
                return file;
            }
        } catch (OverlappingFileLockException error) {
            // This process has it.
        }
        file.close();
        return null;
    }

    private FileOutput(Path directory, String node, FileChannel lockFile, Settings settings) throws IOException {
        this.directory = directory;
        this.node = node;
        this.lockFile = lockFile;
        this.fileBytes = settings.fileBytes();
        this.fileMillis = settings.fileMillis();
        this.totalBytes = settings.totalBytes();
        boolean wasComplete = readState();
        boolean isFirst = seqNext == 0 && !Files.exists(partPath());
        adoptPart();
        this.missingSince = isFirst || wasComplete ? -1 : lastTs;
        // What this process may lose is not older than its start.
        lastTs = Math.max(lastTs, Row.nowMicros());
        writeState(false);
    }

    @Override
    public String node() {
        return node;
    }

    @Override
    public long seqNext() {
        return seqNext;
    }

    @Override
    public long missingSince() {
        return missingSince;
    }

    @Override
    public void write(List<byte[]> rows, long rowsLastTs) throws IOException {
        if (part == null) {
            openPart();
        }
        boolean wasComplete = isComplete;
        int size = 0;
        for (byte[] row : rows) {
            size += row.length;
        }
        ByteBuffer bytes = ByteBuffer.allocate(size);
        for (byte[] row : rows) {
            bytes.put(row);
        }
        bytes.flip();
        try {
            while (bytes.hasRemaining()) {
                part.write(bytes);
            }
        } catch (IOException error) {
            isComplete = false;
            cutBack();
            if (wasComplete) {
                writeState(false);
            }
            throw error;
        }
        partBytes += size;
        seqNext += rows.size();
        lastTs = Math.max(lastTs, rowsLastTs);
        if (partBytes >= fileBytes) {
            finish();
        }
    }

    /** Removes an incomplete write, so that its numbers can be used again. */
    private void cutBack() throws IOException {
        try {
            part.truncate(partBytes);
        } catch (IOException error) {
            part.close();
            part = null;
            throw error;
        }
    }

    @Override
    public void rest() throws IOException {
        if (part != null && System.currentTimeMillis() - partSince >= fileMillis) {
            finish();
        }
    }

    @Override
    public void complete() throws IOException {
        finish();
        isComplete = true;
        writeState(true);
    }

    @Override
    public void close() throws IOException {
        finish();
        lockFile.close();
    }

    private void openPart() throws IOException {
        if (Files.exists(partPath())) {
            // The end of an earlier write could not be cut off.
            adoptPart();
        }
        part = FileChannel.open(partPath(), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        partBytes = 0;
        partSeq = seqNext;
        partSince = System.currentTimeMillis();
    }

    private void finish() throws IOException {
        if (part == null) {
            return;
        }
        part.close();
        part = null;
        publish(partSeq);
        writeState(isComplete);
        deleteOldest();
    }

    private void publish(long firstSeq) throws IOException {
        Path finished = directory.resolve(String.format("%s-%012d.ndjson", node, firstSeq));
        Files.move(partPath(), finished, StandardCopyOption.ATOMIC_MOVE);
    }

    private void deleteOldest() throws IOException {
        List<Path> finished = finished();
        long bytes = 0;
        for (int i = finished.size() - 1; i >= 0; i--) {
            try {
                bytes += Files.size(finished.get(i));
                if (bytes > totalBytes) {
                    Files.delete(finished.get(i));
                }
            } catch (java.nio.file.NoSuchFileException gone) {
                // A shipper has moved it.
            }
        }
    }

    private List<Path> finished() throws IOException {
        String pattern = java.util.regex.Pattern.quote(node) + "-\\d{12,}\\.ndjson";
        try (Stream<Path> files = Files.list(directory)) {
            return files.filter(file -> file.getFileName().toString().matches(pattern))
                .sorted().collect(Collectors.toCollection(ArrayList::new));
        }
    }

    /** Takes over the file that an earlier process was writing: without its incomplete last row. */
    private void adoptPart() throws IOException {
        Path path = partPath();
        if (!Files.exists(path)) {
            return;
        }
        PartFile found = PartFile.read(path);
        if (found.rows == 0) {
            Files.delete(path);
            return;
        }
        try (RandomAccessFile file = new RandomAccessFile(path.toFile(), "rw")) {
            file.setLength(found.bytes);
        }
        seqNext = Math.max(seqNext, found.lastSeq + 1);
        lastTs = Math.max(lastTs, found.lastTs);
        publish(found.firstSeq);
    }

    private Path partPath() {
        return directory.resolve(node + ".part");
    }

    private Path statePath() {
        return directory.resolve(node + ".state");
    }

    /** Reads the state of the last process; returns whether it ended with all rows written. */
    private boolean readState() throws IOException {
        if (!Files.exists(statePath())) {
            return false;
        }
        String text = new String(Files.readAllBytes(statePath()), StandardCharsets.UTF_8);
        String[] words = text.trim().split(" ");
        try {
            seqNext = Long.parseLong(words[0]);
            lastTs = Long.parseLong(words[1]);
            return words[2].equals("complete");
        } catch (RuntimeException error) {
            throw new IOException(statePath() + ": expected the number of the next row, a time and complete or open");
        }
    }

    private void writeState(boolean complete) throws IOException {
        String text = seqNext + " " + lastTs + " " + (complete ? "complete" : "open") + "\n";
        Path temporary = directory.resolve(node + ".state.new");
        Files.write(temporary, text.getBytes(StandardCharsets.UTF_8));
        Files.move(temporary, statePath(), StandardCopyOption.ATOMIC_MOVE);
    }
}
