import com.alibaba.fastjson2.*;
import io.netty.channel.ChannelHandlerContext;
import java.io.*;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.remoting.netty.*;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/** An adapter of mqproof with basic operations: flush, offsets and delivery, through Apache's remoting client. */
public final class Adapter {
    static final int SEND = 10, PULL = 11, QUERY = 14, COMMIT = 15, MAKE_TOPIC = 17, SEARCH = 29, MAX = 30, MIN = 31;
    static final int HEARTBEAT = 34, UNREGISTER = 35, MEMBERS = 38, NOTIFY = 40, MAKE_GROUP = 200, NOT_FOUND = 22;
    static final long LIMIT_MS = 90_000; // more than a pull may wait

    final Map<String, NettyRemotingClient> members = new HashMap<>();
    final Set<String> notified = ConcurrentHashMap.newKeySet();
    final ExecutorService threads = Executors.newCachedThreadPool();
    final NettyRemotingClient client = newClient("");
    String broker, topic, group;
    Future<Object> pulling;

    public static void main(String[] arguments) throws Exception {
        var output = System.out;
        System.setOut(System.err); // the client logs to System.out, which is for answers only
        var adapter = new Adapter();
        adapter.broker = arguments[0];
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = input.readLine()) != null; ) {
            var request = JSON.parseObject(line);
            var answer = new JSONObject().fluentPut("id", request.getIntValue("id"));
            try {
                answer.put("result", adapter.call(request.getString("method"), request.getJSONObject("args")));
            } catch (Exception error) {
                answer.put("error", Map.of("kind", "target", "message", String.valueOf(error)));
            }
            output.println(answer.toString(JSONWriter.Feature.WriteMapNullValue));
        }
        System.exit(0); // the threads of the clients would keep the process
    }

    Object call(String method, JSONObject a) throws Exception {
        int queue = a.getIntValue("queue_id");
        var member = a.getString("member");
        var from = member == null ? client : members.get(member);
        switch (method) {
            case "hello": return Map.of("protocol", 1, "operations", "basic");
            case "open": return open(a.getIntValue("queues"));
            case "send": return send(queue, a);
            case "pull": return pull(from, queue, a);
            case "start_pull":
                pulling = threads.submit(() -> pull(from, queue, a));
                return null;
            case "end_pull": return pulling.get();
            case "commit": return commit(from, queue, a);
            case "query":
                var found = invoke(client, QUERY, "consumerGroup", group, "topic", topic, "queueId", queue);
                return found.getCode() == NOT_FOUND ? null : number(found, "offset");
            case "min_offset": return offset(MIN, queue, 0);
            case "max_offset": return offset(MAX, queue, 0);
            case "search": return offset(SEARCH, queue, a.getLong("time_ms"));
            case "join": return join(member);
            case "leave":
                var ids = new Object[] {"clientID", clientId(member), "consumerGroup", group};
                if (a.getBooleanValue("unregister")) invoke(from, UNREGISTER, ids);
                members.remove(member).shutdown();
                return null;
            case "members":
                var list = invoke(from, MEMBERS, "consumerGroup", group);
                return list.getCode() != 0 ? List.of() : JSON.parseObject(list.getBody()).get("consumerIdList");
            case "notified":
                var names = List.copyOf(notified);
                notified.removeAll(names);
                return names;
            case "close":
                members.values().forEach(NettyRemotingClient::shutdown);
                members.clear();
                return null;
            default: throw new IllegalArgumentException("no method " + method);
        }
    }

    String open(int queues) throws Exception {
        topic = "conform_java_" + System.nanoTime();
        group = topic + "_group";
        accepted(invoke(client, MAKE_TOPIC, "topic", topic, "defaultTopic", "TBW102", "readQueueNums", queues,
                "writeQueueNums", queues, "perm", 6, "topicFilterType", "SINGLE_TAG", "topicSysFlag", 0));
        accepted(invokeWith(client, MAKE_GROUP, Map.of("groupName", group, "consumeEnable", true)));
        return topic;
    }

    Object send(int queue, JSONObject a) throws Exception {
        var tag = a.getString("tag");
        var properties = "UNIQ_KEY\u0001" + a.getString("msg_id") + "\u0002";
        if (!tag.isEmpty()) properties += "TAGS\u0001" + tag + "\u0002";
        var answer = invokeWith(client, SEND, Base64.getDecoder().decode(a.getString("body")),
                "producerGroup", "conform", "topic", topic, "defaultTopic", "TBW102", "defaultTopicQueueNums", 4,
                "queueId", queue, "sysFlag", 0, "bornTimestamp", 1, "flag", 0, "properties", properties,
                "reconsumeTimes", 0, "unitMode", false, "batch", false);
        var fields = Objects.requireNonNullElse(answer.getExtFields(), Map.<String, String>of());
        return Map.of("code", answer.getCode(), "offset", Long.parseLong(fields.getOrDefault("queueOffset", "-1")));
    }

    Object pull(NettyRemotingClient from, int queue, JSONObject a) throws Exception {
        var expression = a.getString("expression");
        var isSql = expression.startsWith("sql:");
        var holdMs = a.getLongValue("hold_ms");
        var commit = a.getLong("commit");
        var flags = 4 | (holdMs > 0 ? 2 : 0) | (commit != null ? 1 : 0);
        var answer = invoke(from, PULL, "consumerGroup", group, "topic", topic, "queueId", queue,
                "queueOffset", a.get("offset"), "maxMsgNums", a.get("count"), "sysFlag", flags,
                "commitOffset", Objects.requireNonNullElse(commit, 0), "suspendTimeoutMillis", holdMs,
                "subscription", isSql ? expression.substring(4) : expression, "subVersion", 1,
                "expressionType", isSql ? "SQL92" : "TAG");
        var body = Objects.requireNonNullElse(answer.getBody(), new byte[0]);
        var messages = MessageDecoder.decodes(ByteBuffer.wrap(body)).stream().map(each -> Map.of(
                "msg_id", each.getProperty("UNIQ_KEY"),
                "offset", each.getQueueOffset(),
                "body", Base64.getEncoder().encodeToString(each.getBody()),
                "topic", each.getTopic(),
                "queue_id", each.getQueueId(),
                "tag", Objects.requireNonNullElse(each.getTags(), ""),
                "stored_ms", each.getStoreTimestamp())).toList();
        return Map.of("code", answer.getCode(), "next_offset", number(answer, "nextBeginOffset"),
                "min_offset", number(answer, "minOffset"), "max_offset", number(answer, "maxOffset"),
                "messages", messages);
    }

    Object commit(NettyRemotingClient from, int queue, JSONObject a) throws Exception {
        var commit = command(COMMIT, "consumerGroup", group, "topic", topic, "queueId", queue,
                "commitOffset", a.get("offset"));
        if (!a.getBooleanValue("oneway")) return from.invokeSync(broker, commit, LIMIT_MS).getCode();
        from.invokeOneway(broker, commit, LIMIT_MS);
        return null;
    }

    Object join(String member) throws Exception {
        members.put(member, newClient(member));
        var subscription = Map.of("topic", topic, "subString", "*", "subVersion", 1, "expressionType", "TAG");
        var data = Map.of("groupName", group, "consumeType", "CONSUME_PASSIVELY", "messageModel", "CLUSTERING",
                "consumeFromWhere", "CONSUME_FROM_FIRST_OFFSET", "subscriptionDataSet", List.of(subscription));
        accepted(invokeWith(members.get(member), HEARTBEAT, Map.of(
                "clientID", clientId(member), "consumerDataSet", List.of(data), "producerDataSet", List.of())));
        return null;
    }

    String clientId(String member) {
        return "127.0.0.1@" + topic + "_" + member;
    }

    NettyRemotingClient newClient(String member) {
        var made = new NettyRemotingClient(new NettyClientConfig());
        made.registerProcessor(NOTIFY, new NettyRequestProcessor() {
            public RemotingCommand processRequest(ChannelHandlerContext context, RemotingCommand request) {
                notified.add(member);
                return null;
            }

            public boolean rejectRequest() {
                return false;
            }
        }, threads);
        made.start();
        return made;
    }

    long offset(int code, int queue, long timeMs) throws Exception {
        return number(invoke(client, code, "topic", topic, "queueId", queue, "timestamp", timeMs), "offset");
    }

    static long number(RemotingCommand answer, String name) {
        if (answer.getExtFields() == null) accepted(answer);
        return Long.parseLong(answer.getExtFields().get(name));
    }

    static void accepted(RemotingCommand answer) {
        if (answer.getCode() == 0) return;
        throw new IllegalStateException("refused with code " + answer.getCode() + ", " + answer.getRemark());
    }

    static RemotingCommand command(int code, Object... fields) {
        var request = RemotingCommand.createRequestCommand(code, null);
        request.setExtFields(new HashMap<>());
        for (var i = 0; i < fields.length; i += 2) request.addExtField("" + fields[i], "" + fields[i + 1]);
        return request;
    }

    RemotingCommand invoke(NettyRemotingClient from, int code, Object... fields) throws Exception {
        return invokeWith(from, code, null, fields);
    }

    RemotingCommand invokeWith(NettyRemotingClient from, int code, Object body, Object... fields) throws Exception {
        var request = command(code, fields);
        request.setBody(body instanceof Map ? JSON.toJSONBytes(body) : (byte[]) body);
        return from.invokeSync(broker, request, LIMIT_MS);
    }
}
