package mqproof.hooks.agent;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;

/**
 * Adds a call at the beginning of a method of a class file: CALLEE.starting(this).
 *
 * The JDK has no library for class files before Java 24, so this class reads as much of the format as it needs (The
 * Java Virtual Machine Specification, chapter 4). The call has 4 bytes. Everything behind it moves by 4: branches are
 * relative, and the padding of switches stays the same. What is absolute is corrected: exception handlers, line
 * numbers, and stack map frames. Other attributes of the code, which serve debuggers, are left out.
 */
final class StartCall {
    private static final int CALL_BYTES = 4;
    private static final int CODE_BYTES_MAX = 65_535;
    private static final int ALOAD_0 = 0x2a;
    private static final int INVOKESTATIC = 0xb8;

    private final DataInputStream in;
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private final DataOutputStream out = new DataOutputStream(bytes);
    private final String method;
    private String[] names;
    private int callee;
    private boolean isFound;

    private StartCall(byte[] source, String method) {
        this.in = new DataInputStream(new ByteArrayInputStream(source));
        this.method = method;
    }

    /** Returns the class with the call in `method`, such as start()V. Throws IOException for another format. */
    static byte[] added(byte[] source, String method, String callee) throws IOException {
        StartCall call = new StartCall(source, method);
        call.copyClass(callee);
        if (!call.isFound) {
            throw new IOException("it has no method " + method);
        }
        return call.bytes.toByteArray();
    }

    private void copyClass(String calleeClass) throws IOException {
        copy(in, out, 8); // magic number and version
        copyConstants(calleeClass);
        copy(in, out, 6); // access, this class, super class
        int interfaces = copyShort(in, out);
        copy(in, out, 2 * interfaces);
        int fields = copyShort(in, out);
        for (int i = 0; i < fields; i++) {
            copy(in, out, 6);
            copyAttributes();
        }
        int methods = copyShort(in, out);
        for (int i = 0; i < methods; i++) {
            copyMethod();
        }
        copyAttributes();
    }

    private void copyConstants(String calleeClass) throws IOException {
        int count = in.readUnsignedShort();
        int added = 6;
        if (count + added > CODE_BYTES_MAX) {
            throw new IOException("its constant pool is full");
        }
        names = new String[count];
        out.writeShort(count + added);
        for (int i = 1; i < count; i++) {
            int tag = in.readUnsignedByte();
            out.writeByte(tag);
            if (tag == 1) {
                names[i] = in.readUTF();
                out.writeUTF(names[i]);
            } else if (tag == 5 || tag == 6) {
                copy(in, out, 8);
                i++; // a long or a double takes two places
            } else {
                copy(in, out, constantBytes(tag));
            }
        }
        text(calleeClass); // count
        out.writeByte(7); // count + 1: class
        out.writeShort(count);
        text("starting"); // count + 2
        text("(Ljava/lang/Object;)V"); // count + 3
        out.writeByte(12); // count + 4: name and type
        out.writeShort(count + 2);
        out.writeShort(count + 3);
        out.writeByte(10); // count + 5: method
        out.writeShort(count + 1);
        out.writeShort(count + 4);
        callee = count + 5;
    }

    private void text(String text) throws IOException {
        out.writeByte(1);
        out.writeUTF(text);
    }

    private static int constantBytes(int tag) throws IOException {
        switch (tag) {
            case 7: case 8: case 16: case 19: case 20:
                return 2;
            case 15:
                return 3;
            case 3: case 4: case 9: case 10: case 11: case 12: case 17: case 18:
                return 4;
            default:
                throw new IOException("constant " + tag + " is not known");
        }
    }

    private void copyAttributes() throws IOException {
        int count = copyShort(in, out);
        for (int i = 0; i < count; i++) {
            copy(in, out, 2);
            copyBlock(in, out);
        }
    }

    private void copyMethod() throws IOException {
        copyShort(in, out); // access
        String name = names[copyShort(in, out)];
        String type = names[copyShort(in, out)];
        boolean isIt = method.equals(name + type);
        int attributes = copyShort(in, out);
        for (int i = 0; i < attributes; i++) {
            int attribute = copyShort(in, out);
            if (isIt && names[attribute].equals("Code")) {
                isFound = true;
                byte[] code = withCall(block());
                out.writeInt(code.length);
                out.write(code);
            } else {
                copyBlock(in, out);
            }
        }
    }

    private byte[] block() throws IOException {
        byte[] block = new byte[in.readInt()];
        in.readFully(block);
        return block;
    }

    private byte[] withCall(byte[] source) throws IOException {
        DataInputStream code = new DataInputStream(new ByteArrayInputStream(source));
        ByteArrayOutputStream changed = new ByteArrayOutputStream();
        DataOutputStream to = new DataOutputStream(changed);
        to.writeShort(Math.max(1, code.readUnsignedShort())); // stack
        copy(code, to, 2); // local variables
        int length = code.readInt();
        if (length + CALL_BYTES > CODE_BYTES_MAX) {
            throw new IOException(method + " is too long");
        }
        to.writeInt(length + CALL_BYTES);
        to.writeByte(ALOAD_0);
        to.writeByte(INVOKESTATIC);
        to.writeShort(callee);
        copy(code, to, length);
        int handlers = copyShort(code, to);
        for (int i = 0; i < handlers; i++) {
            moveShort(code, to); // start
            moveShort(code, to); // end
            moveShort(code, to); // handler
            copy(code, to, 2);
        }
        moveAttributes(code, to);
        return changed.toByteArray();
    }

    private void moveAttributes(DataInputStream code, DataOutputStream to) throws IOException {
        ByteArrayOutputStream kept = new ByteArrayOutputStream();
        DataOutputStream keptOut = new DataOutputStream(kept);
        int number = 0;
        int attributes = code.readUnsignedShort();
        for (int i = 0; i < attributes; i++) {
            int name = code.readUnsignedShort();
            byte[] body = new byte[code.readInt()];
            code.readFully(body);
            byte[] moved;
            if (names[name].equals("StackMapTable")) {
                moved = StackMap.moved(body, CALL_BYTES);
            } else if (names[name].equals("LineNumberTable")) {
                moved = movedLines(body);
            } else {
                continue;
            }
            number++;
            keptOut.writeShort(name);
            keptOut.writeInt(moved.length);
            keptOut.write(moved);
        }
        to.writeShort(number);
        kept.writeTo(to);
    }

    private static byte[] movedLines(byte[] body) throws IOException {
        DataInputStream lines = new DataInputStream(new ByteArrayInputStream(body));
        ByteArrayOutputStream moved = new ByteArrayOutputStream();
        DataOutputStream to = new DataOutputStream(moved);
        int count = copyShort(lines, to);
        for (int i = 0; i < count; i++) {
            moveShort(lines, to);
            copy(lines, to, 2);
        }
        return moved.toByteArray();
    }

    private static void moveShort(DataInputStream from, DataOutputStream to) throws IOException {
        to.writeShort(from.readUnsignedShort() + CALL_BYTES);
    }

    static int copyShort(DataInputStream from, DataOutputStream to) throws IOException {
        int number = from.readUnsignedShort();
        to.writeShort(number);
        return number;
    }

    static void copy(DataInputStream from, DataOutputStream to, int length) throws IOException {
        byte[] bytes = new byte[length];
        from.readFully(bytes);
        to.write(bytes);
    }

    private static void copyBlock(DataInputStream from, DataOutputStream to) throws IOException {
        int length = from.readInt();
        to.writeInt(length);
        copy(from, to, length);
    }
}
