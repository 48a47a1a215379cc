package mqproof.hooks.log;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/**
 * The messages that are recorded: all, or those whose id has a small hash. All nodes with the same rate choose the same
 * messages.
 */
public final class Sample {
    private static final double HASHES = 4_294_967_296.0;

    private final long limit;

    /** A rate of 1 chooses all messages. */
    public Sample(double rate) {
        this.limit = Math.round(rate * HASHES);
    }

    /** Returns whether the first 32 bits of the MD5 of the id are below the limit. */
    public boolean contains(String messageId) {
        if (limit >= HASHES) {
            return true;
        }
        byte[] hash;
        try {
            hash = MessageDigest.getInstance("MD5").digest(messageId.getBytes(StandardCharsets.UTF_8));
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error); // every Java has MD5
        }
        long begin = 0;
        for (int i = 0; i < 4; i++) {
            begin = begin << 8 | hash[i] & 0xFF;
        }
        return begin < limit;
    }
}
