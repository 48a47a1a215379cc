package example;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** A JUnit extension: one broker for a class of tests, reset before each test. Copy it into your project. */
public final class RocketMqBroker implements BeforeAllCallback, BeforeEachCallback, AfterAllCallback {
    private static final long START_SECONDS = 60;

    private final HttpClient http = HttpClient.newHttpClient();
    private Process process;
    private Path folder;
    private JsonObject ready;

    /** Returns the address of the name server, for the clients of the test. */
    public String nameServer() {
        return ready.get("namesrv").getAsString();
    }

    /** Lets the time of the broker pass at once. */
    public void advanceHours(double hours) throws Exception {
        request("POST", "/advance", "{\"hours\": " + hours + "}");
    }

    /** Lets the next sends be executed and their answers be lost. */
    public void loseAnswersOfSends(int times) throws Exception {
        request("POST", "/faults", "{\"operation\": \"send\", \"executed\": true, \"times\": " + times + "}");
    }

    /** Returns the bodies of all messages that the topic has. */
    public List<String> bodies(String topic) throws Exception {
        var path = "/messages?topic=" + URLEncoder.encode(topic, StandardCharsets.UTF_8);
        var bodies = new ArrayList<String>();
        for (var message : request("GET", path, "").getAsJsonArray("messages")) {
            bodies.add(message.getAsJsonObject().get("body").getAsString());
        }
        return bodies;
    }

    @Override
    public void beforeAll(ExtensionContext context) throws Exception {
        folder = Files.createTempDirectory("rocketmq");
        var file = folder.resolve("ready.json");
        var program = System.getenv().getOrDefault("MQPROOF", "mqproof");
        process = new ProcessBuilder(
                        program, "serve", "--ephemeral", "--control", "0", "--ready-file", file.toString())
                .redirectErrorStream(true)
                .redirectOutput(folder.resolve("broker.log").toFile())
                .start();
        var until = System.nanoTime() + TimeUnit.SECONDS.toNanos(START_SECONDS);
        while (!Files.exists(file)) {
            if (!process.isAlive() || System.nanoTime() > until) {
                process.destroyForcibly();
                throw new IOException("no broker: " + Files.readString(folder.resolve("broker.log")));
            }
            Thread.sleep(20);
        }
        ready = JsonParser.parseString(Files.readString(file)).getAsJsonObject();
    }

    @Override
    public void beforeEach(ExtensionContext context) throws Exception {
        request("POST", "/reset", "");
    }

    @Override
    public void afterAll(ExtensionContext context) throws Exception {
        process.destroy();
        if (!process.waitFor(30, TimeUnit.SECONDS)) {
            process.destroyForcibly();
        }
    }

    private JsonObject request(String method, String path, String body) throws Exception {
        var uri = URI.create("http://" + ready.get("control").getAsString() + path);
        var request = HttpRequest.newBuilder(uri)
                .header("Content-Type", "application/json")
                .method(method, HttpRequest.BodyPublishers.ofString(body))
                .build();
        var response = http.send(request, HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() != 200) {
            throw new IOException(method + " " + path + ": " + response.body());
        }
        return JsonParser.parseString(response.body()).getAsJsonObject();
    }
}
