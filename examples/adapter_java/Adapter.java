import com.alibaba.fastjson2.*;
import io.netty.channel.ChannelHandlerContext;
import java.io.*;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.*;
import java.util.regex.Pattern;
import org.apache.rocketmq.common.message.*;
import org.apache.rocketmq.remoting.netty.*;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;

/** An adapter of mqproof: the suites flush, offsets and delivery, through Apache's remoting client for Java. */
public final class Adapter {
    static final int SEND = 10, PULL = 11, QUERY = 14, COMMIT = 15, MAKE_TOPIC = 17, SEARCH = 29, MAX = 30, MIN = 31;
    static final int HEARTBEAT = 34, UNREGISTER = 35, MEMBERS = 38, NOTIFY = 40, CLUSTER = 106, MAKE_GROUP = 200;
    static final Map<Integer, String> SENT =
            Map.of(0, "SEND_OK", 10, "FLUSH_DISK_TIMEOUT", 11, "SLAVE_NOT_AVAILABLE", 12, "FLUSH_SLAVE_TIMEOUT");
    static final Set<Integer> REFUSED = Set.of(2, 13, 14, 16, 17); // the message is certainly not stored
    static final Map<Integer, String> PULLED_IN_FLUSH = Map.of(0, "FOUND", 19, "NO_NEW", 21, "OFFSET_MOVED");
    static final Map<Integer, String> PULLED =
            Map.of(0, "found", 19, "no new message", 20, "no matched message", 21, "offset moved");
    static final long LIMIT_MS = 30_000, HOLD_MS = 60_000;

    final Map<String, NettyRemotingClient> members = new HashMap<>();
    final Set<String> notified = ConcurrentHashMap.newKeySet();
    final NettyRemotingClient client = newClient("");
    final String nameServer;
    String suite, broker, topic, group;

    Adapter(String nameServer) {
        this.nameServer = nameServer;
    }

    public static void main(String[] arguments) throws Exception {
        var output = System.out;
        System.setOut(System.err); // the client logs to System.out, which is for answers only
        var adapter = new Adapter(arguments[0]);
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = input.readLine()) != null; ) {
            var request = JSON.parseObject(line);
            var answer = new JSONObject().fluentPut("id", request.getIntValue("id"));
            try {
                answer.put("result", adapter.call(request.getString("method"), request.getJSONObject("args")));
            } catch (Exception error) {
                var kind = error instanceof UnsupportedOperationException ? "unsupported" : "target";
                answer.put("error", Map.of("kind", kind, "message", String.valueOf(error)));
            }
            output.println(answer.toString(JSONWriter.Feature.WriteMapNullValue));
        }
        System.exit(0); // the threads of the clients would keep the process
    }

    Object call(String method, JSONObject a) throws Exception {
        int queue = a.getIntValue("queue_id");
        var from = a.containsKey("member") ? members.get(a.getString("member")) : client;
        switch (method) {
            case "hello":
                suite = a.getString("suite");
                if (!Set.of("flush", "offsets", "delivery").contains(suite)) {
                    throw new UnsupportedOperationException("flush, offsets and delivery are supported");
                }
                var capabilities = suite.equals("flush") ? List.of("commit_offset") : List.of();
                return Map.of("protocol", 1, "capabilities", capabilities);
            case "open": return open(a.containsKey("setup") ? a.getJSONObject("setup").getIntValue("queues") : 3);
            case "send": return send(queue, a);
            case "pull": return pulled(pullOnce(from, queue, a, 0), a.getString("topic"));
            case "hold": return hold(queue, a);
            case "commit_offset": case "commit": case "commit_oneway":
                var commit = command(COMMIT, null, "consumerGroup", group, "topic", topic, "queueId", queue,
                        "commitOffset", a.getLong("offset"));
                if (method.equals("commit_oneway")) from.invokeOneway(broker, commit, LIMIT_MS);
                else accepted(from.invokeSync(broker, commit, LIMIT_MS));
                return method.equals("commit_offset") ? true : null;
            case "query": return query(queue);
            case "query_offset": return Objects.requireNonNullElse(query(queue), 0L);
            case "search": return search(queue, a.getIntValue("place"), a.getLongValue("shift_ms"));
            case "min_offset": return offset(MIN, queue);
            case "max_offset": return offset(MAX, queue);
            case "join": join(a.getString("member")); return null;
            case "leave":
                invoke(from, UNREGISTER, null, "clientID", clientId(a.getString("member")), "consumerGroup", group);
                members.remove(a.getString("member")).shutdown();
                return null;
            case "die":
                members.remove(a.getString("member")).shutdown();
                await(() -> !memberNames(client).contains(a.getString("member")));
                return null;
            case "members": return memberNames(members.get(a.getString("asker")));
            case "notified":
                var expected = a.getList("expected", String.class);
                await(() -> notified.containsAll(expected));
                var found = notified.stream().filter(members::containsKey).toList();
                notified.clear();
                return found;
            case "close":
                members.values().forEach(NettyRemotingClient::shutdown);
                members.clear();
                return null;
            default: throw new IllegalArgumentException("no method " + method);
        }
    }

    Object open(int queues) throws Exception {
        var info = accepted(client.invokeSync(nameServer, command(CLUSTER, null), LIMIT_MS)).getBody();
        var master = Pattern.compile("\"brokerAddrs\":\\{\"?0\"?:\"([^\"]+)\"").matcher(new String(info));
        if (!master.find()) throw new IllegalStateException("no master at " + nameServer);
        broker = master.group(1);
        topic = "conform_java_" + System.nanoTime();
        group = topic + "_group";
        accepted(invoke(client, MAKE_TOPIC, null, "topic", topic, "defaultTopic", "TBW102", "readQueueNums", queues,
                "writeQueueNums", queues, "perm", 6, "topicFilterType", "SINGLE_TAG", "topicSysFlag", 0));
        var settings = Map.of("groupName", group, "consumeEnable", true, "consumeFromMinEnable", true,
                "consumeBroadcastEnable", true, "retryQueueNums", 1, "retryMaxTimes", 16);
        accepted(invoke(client, MAKE_GROUP, JSON.toJSONBytes(settings)));
        return null;
    }

    Object send(int queue, JSONObject a) throws Exception {
        var id = a.getString("msg_id");
        var tag = Objects.requireNonNullElse(a.getString("tag"), "");
        var body = a.containsKey("body") ? Base64.getDecoder().decode(a.getString("body")) : id.getBytes();
        var properties = "UNIQ_KEY\u0001" + id + (tag.isEmpty() ? "" : "\u0002TAGS\u0001" + tag) + "\u0002";
        Thread.sleep(2); // messages are stored at different times
        var answer = invoke(client, SEND, body, "producerGroup", "conform", "topic", topic, "defaultTopic", "TBW102",
                "defaultTopicQueueNums", 4, "queueId", queue, "sysFlag", 0, "bornTimestamp", 1, "flag", 0,
                "properties", properties, "reconsumeTimes", 0, "unitMode", false, "batch", false);
        var status = SENT.get(answer.getCode());
        if (status == null && suite.equals("flush")) {
            var outcome = REFUSED.contains(answer.getCode()) ? "failed" : "indeterminate";
            return Map.of("outcome", outcome, "status", "code " + answer.getCode());
        }
        if (status == null) accepted(answer);
        var offset = Long.parseLong(answer.getExtFields().get("queueOffset"));
        await(() -> offset(MAX, queue) > offset); // brokers answer before the message is in its queue
        return suite.equals("flush") ? Map.of("outcome", "ok", "status", status, "queue_offset", offset) : offset;
    }

    RemotingCommand pullOnce(NettyRemotingClient from, int queue, JSONObject a, long holdMs) throws Exception {
        var expression = a.containsKey("expression") ? a.getString("expression") : "*";
        var sql = expression.startsWith("sql:");
        var commits = a.getLong("commit") != null;
        return invoke(from, PULL, null, "consumerGroup", group, "topic", topic, "queueId", queue,
                "queueOffset", a.getLong("offset"), "maxMsgNums", a.get(suite.equals("flush") ? "max_count" : "count"),
                "sysFlag", 4 | (holdMs > 0 ? 2 : 0) | (commits ? 1 : 0), "commitOffset", commits ? a.get("commit") : 0,
                "suspendTimeoutMillis", holdMs, "subscription", sql ? expression.substring(4) : expression,
                "subVersion", 1, "expressionType", sql ? "SQL92" : "TAG");
    }

    Object pulled(RemotingCommand answer, String named) {
        if (suite.equals("delivery")) return messages(answer, null);
        var status = (named != null ? PULLED_IN_FLUSH : PULLED).get(answer.getCode());
        if (status == null) accepted(answer);
        var found = new HashMap<String, Object>(Map.of("status", status, "messages", messages(answer, named)));
        Map.of("next_offset", "nextBeginOffset", "min_offset", "minOffset", "max_offset", "maxOffset")
                .forEach((ours, theirs) -> found.put(ours, Long.parseLong(answer.getExtFields().get(theirs))));
        return found;
    }

    List<Map<String, Object>> messages(RemotingCommand answer, String named) {
        return stored(answer).stream().map(each -> {
            var one = new HashMap<String, Object>();
            one.put(named != null ? "queue_offset" : "offset", each.getQueueOffset());
            one.put("msg_id", named != null ? each.getProperty("UNIQ_KEY") : new String(each.getBody()));
            if (suite.equals("offsets")) one.put("tag", Objects.requireNonNullElse(each.getTags(), ""));
            if (named != null) {
                one.put("body", Base64.getEncoder().encodeToString(each.getBody()));
                one.put("topic", each.getTopic().equals(topic) ? named : each.getTopic());
                one.put("queue_id", each.getQueueId());
            }
            return (Map<String, Object>) one;
        }).toList();
    }

    static List<MessageExt> stored(RemotingCommand answer) {
        return answer.getBody() == null ? List.of() : MessageDecoder.decodes(ByteBuffer.wrap(answer.getBody()));
    }

    Object hold(int queue, JSONObject a) throws Exception {
        var pulling = CompletableFuture.supplyAsync(() -> {
            try {
                return Map.entry(pullOnce(client, queue, a, HOLD_MS), System.nanoTime());
            } catch (Exception error) {
                throw new IllegalStateException(error);
            }
        });
        Thread.sleep(20);
        var sent = new ArrayList<Object>();
        for (var pair : a.getJSONArray("then").toList(JSONArray.class)) {
            var one = new JSONObject().fluentPut("msg_id", pair.get(0)).fluentPut("tag", pair.get(1));
            sent.add(one.fluentPut("offset", send(queue, one)));
        }
        var sentAt = System.nanoTime();
        var waitedS = Math.max(0, pulling.get().getValue() - sentAt) / 1e9;
        return Map.of("answer", pulled(pulling.get().getKey(), null), "sent", sent, "waited_s", waitedS);
    }

    Object search(int queue, int place, long shiftMs) throws Exception {
        var times = new ArrayList<List<Long>>();
        var next = new JSONObject().fluentPut("offset", offset(MIN, queue)).fluentPut("count", 32);
        for (List<MessageExt> some; !(some = stored(pullOnce(client, queue, next, 0))).isEmpty(); ) {
            some.forEach(each -> times.add(List.of(each.getQueueOffset(), each.getStoreTimestamp())));
            next.put("offset", some.get(some.size() - 1).getQueueOffset() + 1);
        }
        var time = (times.isEmpty() ? System.currentTimeMillis() : times.get(place % times.size()).get(1)) + shiftMs;
        var answer = invoke(client, SEARCH, null, "topic", topic, "queueId", queue, "timestamp", time);
        var offset = Long.parseLong(accepted(answer).getExtFields().get("offset"));
        return Map.of("times", times, "requested_ms", time, "offset", offset);
    }

    Long query(int queue) throws Exception {
        var answer = invoke(client, QUERY, null, "consumerGroup", group, "topic", topic, "queueId", queue);
        return answer.getCode() == 22 ? null : Long.valueOf(accepted(answer).getExtFields().get("offset"));
    }

    long offset(int code, int queue) throws Exception {
        var answer = accepted(invoke(client, code, null, "topic", topic, "queueId", queue));
        return Long.parseLong(answer.getExtFields().get("offset"));
    }

    void join(String member) throws Exception {
        members.put(member, newClient(member));
        var subscription = Map.of("topic", topic, "subString", "*", "subVersion", 1, "expressionType", "TAG");
        var data = Map.of("groupName", group, "consumeType", "CONSUME_PASSIVELY", "messageModel", "CLUSTERING",
                "consumeFromWhere", "CONSUME_FROM_FIRST_OFFSET", "subscriptionDataSet", List.of(subscription));
        var beat = Map.of("clientID", clientId(member), "consumerDataSet", List.of(data), "producerDataSet", List.of());
        accepted(invoke(members.get(member), HEARTBEAT, JSON.toJSONBytes(beat)));
    }

    List<String> memberNames(NettyRemotingClient from) throws Exception {
        var answer = invoke(from, MEMBERS, null, "consumerGroup", group);
        if (answer.getCode() != 0) return List.of(); // the group has no members
        var ids = JSON.parseObject(answer.getBody()).getList("consumerIdList", String.class);
        return ids.stream().map(id -> id.substring(id.lastIndexOf('_') + 1)).toList();
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
        }, Executors.newSingleThreadExecutor());
        made.start();
        return made;
    }

    static void await(Callable<Boolean> isReached) throws Exception {
        for (var looks = 0; looks < 600 && !isReached.call(); looks++) Thread.sleep(50);
    }

    static RemotingCommand accepted(RemotingCommand answer) {
        if (answer.getCode() == 0) return answer;
        throw new IllegalStateException("refused with code " + answer.getCode() + ", " + answer.getRemark());
    }

    static RemotingCommand command(int code, byte[] body, Object... fields) {
        var request = RemotingCommand.createRequestCommand(code, null);
        request.setBody(body);
        request.setExtFields(new HashMap<>());
        for (var i = 0; i < fields.length; i += 2) request.addExtField("" + fields[i], "" + fields[i + 1]);
        return request;
    }

    RemotingCommand invoke(NettyRemotingClient from, int code, byte[] body, Object... fields) throws Exception {
        return from.invokeSync(broker, command(code, body, fields), LIMIT_MS + HOLD_MS);
    }
}
