package mqproof.hooks.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;

import org.junit.jupiter.api.Test;

/** The changed class passes Java's verifier and does what it did, after the call. */
public class StartCallTest {
    public static final List<Object> STARTED = new ArrayList<>();

    public static void starting(Object started) {
        STARTED.add(started);
    }

    /** A method with all that an inserted call must move: switches, handlers, loops, and objects in creation. */
    public static class Sample {
        public String result = "";

        public void start() {
            long wide = 5L;
            for (int i = 0; i < 4; i++) {
                try {
                    switch (i) {
                        case 0:
                            result += new StringBuilder(i > 5 ? "x" : "zero").append(wide);
                            break;
                        case 1:
                            throw new IllegalStateException(result.isEmpty() ? "none" : "one");
                        case 2:
                            result += "two";
                            break;
                        default:
                            switch (result) {
                                case "zero5one.two":
                                    result += "!";
                                    break;
                                default:
                                    result += "?";
                            }
                    }
                } catch (IllegalStateException error) {
                    result += error.getMessage() + ".";
                } finally {
                    wide++;
                }
            }
        }
    }

    @Test
    void aCallIsAdded() throws Exception {
        byte[] changed = StartCall.added(bytes(), "start()V", StartCallTest.class.getName().replace('.', '/'));
        ClassLoader loader = new ClassLoader(StartCallTest.class.getClassLoader()) {
            @Override
            protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
                if (name.equals(Sample.class.getName())) {
                    return defineClass(name, changed, 0, changed.length);
                }
                return super.loadClass(name, resolve);
            }
        };
        Object sample = loader.loadClass(Sample.class.getName()).getConstructor().newInstance();
        sample.getClass().getMethod("start").invoke(sample);
        assertEquals("zero5one.two!", sample.getClass().getField("result").get(sample));
        assertEquals(1, STARTED.size());
        assertEquals(sample, STARTED.get(0));
    }

    @Test
    void aClassWithoutTheMethodIsRefused() {
        assertThrows(IOException.class, () -> StartCall.added(bytes(), "begin()V", "x/Y"));
    }

    private static byte[] bytes() throws IOException {
        try (InputStream in = Sample.class.getResourceAsStream("StartCallTest$Sample.class")) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            for (int next = in.read(); next >= 0; next = in.read()) {
                out.write(next);
            }
            return out.toByteArray();
        }
    }
}
