import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.rocketmq.broker.filter.MessageEvaluationContext;
import org.apache.rocketmq.filter.FilterFactory;
import org.apache.rocketmq.filter.FilterSpi;
import org.apache.rocketmq.filter.expression.Expression;

/** Reads lines "base64(expression) [name=base64(value)]*", writes TRUE, FALSE, NULL, ERROR or INVALID for each. */
public class FilterOracle {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = System.out;
        FilterSpi filter = FilterFactory.INSTANCE.get("SQL92");
        for (String line; (line = in.readLine()) != null; ) {
            String[] parts = line.split(" ");
            String expression = text(parts[0]);
            Map<String, String> properties = new HashMap<>();
            for (int i = 1; i < parts.length; i++) {
                int at = parts[i].indexOf('=');
                properties.put(parts[i].substring(0, at), text(parts[i].substring(at + 1)));
            }
            out.println(judge(filter, expression, properties));
        }
        out.flush();
        System.exit(0);
    }

    private static String judge(FilterSpi filter, String expression, Map<String, String> properties) {
        Expression compiled;
        try {
            compiled = filter.compile(expression);
        } catch (Throwable error) {
            return "INVALID " + String.valueOf(error).replace('\n', ' ').replace('\r', ' ');
        }
        try {
            Object found = compiled.evaluate(new MessageEvaluationContext(properties));
            return found == null ? "NULL" : found instanceof Boolean ? ((Boolean) found ? "TRUE" : "FALSE") : "OTHER " + found;
        } catch (Throwable error) {
            return "ERROR " + String.valueOf(error).replace('\n', ' ').replace('\r', ' ');
        }
    }

    private static String text(String encoded) {
        return new String(Base64.getDecoder().decode(encoded), StandardCharsets.UTF_8);
    }
}
