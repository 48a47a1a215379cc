package mqproof.hooks.agent;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;

/** Moves a StackMapTable behind inserted code: its first frame, and the places of objects that are not created yet. */
final class StackMap {
    private static final int UNINITIALIZED = 8;
    private static final int OBJECT = 7;

    private final DataInputStream in;
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private final DataOutputStream out = new DataOutputStream(bytes);
    private final int by;

    private StackMap(byte[] body, int by) {
        this.in = new DataInputStream(new ByteArrayInputStream(body));
        this.by = by;
    }

    /** Returns the body of the attribute for code that begins `by` bytes later. */
    static byte[] moved(byte[] body, int by) throws IOException {
        StackMap map = new StackMap(body, by);
        int frames = StartCall.copyShort(map.in, map.out);
        for (int i = 0; i < frames; i++) {
            map.frame(i == 0 ? by : 0);
        }
        return map.bytes.toByteArray();
    }

    private void frame(int more) throws IOException {
        int type = in.readUnsignedByte();
        if (type < 64) {
            same(type, more);
        } else if (type < 128) {
            oneOnStack(type - 64, more);
        } else if (type == 247) {
            offset(type, more);
            types(1);
        } else if (type >= 248 && type <= 251) {
            offset(type, more);
        } else if (type >= 252 && type <= 254) {
            offset(type, more);
            types(type - 251);
        } else if (type == 255) {
            offset(type, more);
            types(StartCall.copyShort(in, out));
            types(StartCall.copyShort(in, out));
        } else {
            throw new IOException("frame " + type + " is not known");
        }
    }

    private void same(int delta, int more) throws IOException {
        if (delta + more < 64) {
            out.writeByte(delta + more);
        } else {
            out.writeByte(251);
            out.writeShort(delta + more);
        }
    }

    private void oneOnStack(int delta, int more) throws IOException {
        if (delta + more < 64) {
            out.writeByte(delta + more + 64);
        } else {
            out.writeByte(247);
            out.writeShort(delta + more);
        }
        types(1);
    }

    private void offset(int type, int more) throws IOException {
        out.writeByte(type);
        out.writeShort(in.readUnsignedShort() + more);
    }

    private void types(int count) throws IOException {
        for (int i = 0; i < count; i++) {
            int tag = in.readUnsignedByte();
            out.writeByte(tag);
            if (tag == OBJECT) {
                StartCall.copyShort(in, out);
            } else if (tag == UNINITIALIZED) {
                out.writeShort(in.readUnsignedShort() + by);
            } else if (tag > UNINITIALIZED) {
                throw new IOException("type " + tag + " is not known");
            }
        }
    }
}
