-- The audit's checks of events, written by hand for DuckDB: the other side of `mqproof bench audit`. The last
-- statement returns the violations, in the columns of schema.KEY; they must be those that the audit finds.
-- `log` is the event log; clocks of two nodes differ by 100 ms at most.

CREATE TEMP TABLE brokers AS
SELECT DISTINCT node FROM log WHERE kind IN ('append', 'flush', 'dispatch', 'truncate', 'recover');

CREATE TEMP VIEW named AS
SELECT *, coalesce(attrs['broker'],
    CASE WHEN attrs['node'] IN (FROM brokers) THEN attrs['node'] END,
    CASE WHEN node IN (FROM brokers) THEN node END) AS broker
FROM log;

CREATE TEMP TABLE rare AS
SELECT * FROM named
WHERE kind IN ('crash', 'recover', 'truncate', 'become_leader', 'rebalance', 'register', 'unregister',
    'consume_fail', 'retry') OR (kind = 'offset_commit' AND attrs['reset'] = 'true');

-- The events that make a repeated delivery or a step back legal, with the group, node or broker that they concern.
-- DuckDB inserts the arguments of `because` as text, so no column here has the name of a column that a caller passes.
CREATE TEMP TABLE causes AS
SELECT 'group ' || "group" AS key, ts AS happened FROM rare WHERE kind = 'rebalance' AND "group" IS NOT NULL
UNION ALL
SELECT 'node ' || coalesce(attrs['node'], node), ts FROM rare
WHERE kind IN ('crash', 'unregister') OR (kind = 'register' AND client IS NOT NULL)
UNION ALL
SELECT 'broker ' || broker, ts FROM rare
WHERE kind IN ('crash', 'recover', 'truncate', 'become_leader') AND broker IS NOT NULL
UNION ALL
SELECT 'queue ' || concat_ws(' ', "group", broker, topic, queue_id), ts FROM rare WHERE kind = 'offset_commit'
UNION ALL
SELECT 'message ' || "group" || ' ' || msg_id, ts FROM rare WHERE kind IN ('consume_fail', 'retry');

CREATE TEMP MACRO because(wanted, from_ts, to_ts) AS EXISTS (
    FROM causes WHERE list_contains(wanted, key) AND happened BETWEEN from_ts - 100000 AND to_ts + 100000
);

-- What recoveries cut off: of a broker's appends before until_seq, those at kept_end and above.
CREATE TEMP TABLE cuts AS
SELECT node, seq AS until_seq,
    min(commit_offset) OVER (PARTITION BY node ORDER BY seq ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
        AS kept_end
FROM rare WHERE kind IN ('recover', 'truncate') AND commit_offset IS NOT NULL;

CREATE TEMP TABLE modes AS
SELECT node, min(attrs['flush_disk_type']) AS mode FROM rare WHERE kind = 'recover' GROUP BY node
HAVING min(attrs['flush_disk_type']) = max(attrs['flush_disk_type']);

CREATE TEMP TABLE lost_appends AS
SELECT a.node, a.seq, a.msg_id
FROM (SELECT node, seq, msg_id, commit_offset FROM log WHERE kind = 'append') a
ASOF JOIN cuts ON a.node = cuts.node AND a.seq < cuts.until_seq
WHERE a.commit_offset >= cuts.kept_end;

CREATE TEMP TABLE reach AS
SELECT "group", broker, topic, queue_id, min(queue_offset) AS lowest, max(queue_offset) AS highest, min(ts) AS began
FROM named WHERE kind = 'deliver' AND queue_offset IS NOT NULL GROUP BY ALL;

CREATE TEMP TABLE audience AS
SELECT topic, list(DISTINCT "group") AS subscribed FROM reach WHERE NOT starts_with(topic, '%RETRY%') GROUP BY topic;

-- One aggregation by message, which leaves the few messages that need an exact check.
CREATE TEMP TABLE ambiguous AS
WITH messages AS (
    SELECT msg_id, any_value(topic) FILTER (kind <> 'deliver') AS topic,
        count(*) FILTER (kind = 'send') AS sends,
        count(*) FILTER (kind = 'send_ack') AS acked,
        count(*) FILTER (kind = 'deliver') AS deliveries,
        bit_xor(hash("group")) FILTER (kind = 'deliver') AS delivered_to
    FROM log WHERE kind IN ('send', 'send_ack', 'append', 'deliver') GROUP BY msg_id
), expected AS (
    SELECT topic, len(subscribed) AS groups, list_reduce(list_transform(subscribed, lambda g: hash(g)), lambda a, b: xor(a, b)) AS delivered_to
    FROM audience
)
SELECT msg_id FROM messages LEFT JOIN expected USING (topic)
WHERE NOT ((acked = 0 AND deliveries = 0)
    OR (sends > 0 AND deliveries = coalesce(groups, 0) AND messages.delivered_to IS NOT DISTINCT FROM expected.delivered_to))
UNION SELECT msg_id FROM lost_appends;

CREATE TEMP TABLE ambiguous_events AS
SELECT named.*, lost.seq IS NOT NULL AS cut, modes.mode
FROM named SEMI JOIN ambiguous USING (msg_id)
LEFT JOIN lost_appends lost ON named.kind = 'append' AND lost.node = named.node AND lost.seq = named.seq
LEFT JOIN modes ON named.kind = 'append' AND modes.node = named.node;

CREATE TEMP TABLE messages AS
SELECT msg_id, max(topic) FILTER (kind <> 'deliver') AS topic,
    count(*) FILTER (kind = 'send') AS sends,
    max(attempt) FILTER (kind = 'send') AS attempts,
    count(*) FILTER (kind = 'send_ack' AND status = 'SEND_OK') AS acked,
    min(ts) FILTER (kind = 'send_ack' AND status = 'SEND_OK') AS acked_ts,
    count(*) FILTER (kind = 'append') AS appends,
    count(*) FILTER (cut) AS cut,
    count(*) FILTER (kind = 'append' AND mode = 'SYNC_FLUSH') AS sync_appends,
    count(*) FILTER (kind = 'append' AND mode = 'ASYNC_FLUSH') AS async_appends,
    count(*) FILTER (kind = 'deliver') AS deliveries,
    list(DISTINCT {broker: broker, queue_id: queue_id, queue_offset: queue_offset})
        FILTER (kind IN ('send_ack', 'append') AND queue_offset IS NOT NULL) AS places,
    coalesce(list(DISTINCT "group") FILTER (kind = 'deliver'), []) AS groups
FROM ambiguous_events GROUP BY msg_id;

CREATE TEMP TABLE missing AS
SELECT messages.*, unnest(CASE
    WHEN subscribed IS NULL AND appends > 0 AND cut = appends THEN [NULL]
    ELSE list_filter(subscribed, lambda g: NOT list_contains(groups, g)) END) AS "group"
FROM messages LEFT JOIN audience USING (topic) WHERE acked > 0;

CREATE TEMP TABLE jumped AS
SELECT "group", broker, topic, queue_id, CAST(attrs['previous'] AS BIGINT) AS lowest, queue_offset AS highest
FROM rare WHERE kind = 'offset_commit';

-- Missing for a group, and at a place that it has passed or that is still ahead.
CREATE TEMP TABLE passed AS
SELECT m.msg_id, m."group", any_value(m.topic) AS topic, any_value(m.places) AS places
FROM (SELECT *, unnest(places) AS spot FROM missing WHERE NOT (appends > 0 AND cut = appends)) m
LEFT JOIN reach r ON r."group" = m."group" AND r.broker = m.spot.broker AND r.topic = m.topic AND r.queue_id = m.spot.queue_id
LEFT JOIN (SELECT "group", topic, min(began) AS began FROM reach GROUP BY ALL) s
    ON s."group" = m."group" AND s.topic = m.topic
GROUP BY m.msg_id, m."group"
HAVING bool_and(coalesce(m.spot.queue_offset < r.highest AND (m.spot.queue_offset > r.lowest OR m.acked_ts >= s.began), false)
    AND NOT EXISTS (FROM jumped j WHERE j."group" = m."group" AND j.broker = m.spot.broker AND j.topic = m.topic
        AND j.queue_id = m.spot.queue_id AND m.spot.queue_offset >= j.lowest AND m.spot.queue_offset < j.highest));

CREATE TEMP TABLE suspect_deliveries AS
SELECT d.*, m.sends, m.attempts
FROM ambiguous_events d JOIN messages m USING (msg_id) WHERE d.kind = 'deliver' AND m.deliveries > len(m.groups);

CREATE TEMP TABLE repeats AS
SELECT * FROM (
    SELECT *, lag(ts) OVER (PARTITION BY msg_id, "group", broker, topic, queue_id, queue_offset ORDER BY ts, node, seq) AS from_ts
    FROM suspect_deliveries
) WHERE from_ts IS NOT NULL;

CREATE TEMP MACRO of_all(topic, place) AS CASE
    WHEN min(place) FILTER (NOT starts_with(topic, '%RETRY%')) = max(place) FILTER (NOT starts_with(topic, '%RETRY%'))
    THEN min(place) FILTER (NOT starts_with(topic, '%RETRY%')) END;
CREATE TEMP TABLE spread AS
SELECT msg_id, "group",
    of_all(topic, broker) AS broker, of_all(topic, topic) AS topic, of_all(topic, queue_id) AS queue_id,
    count(DISTINCT (broker, topic, queue_id, queue_offset)) FILTER (NOT starts_with(topic, '%RETRY%')) AS own,
    count(DISTINCT (broker, topic, queue_id, queue_offset)) FILTER (starts_with(topic, '%RETRY%')) AS retried,
    max(sends) > 1 OR max(attempts) > 1 AS again, min(ts) AS from_ts, max(ts) AS to_ts
FROM suspect_deliveries GROUP BY msg_id, "group";

-- Every delivery and commit after the one before, as its node numbered them.
CREATE TEMP TABLE steps AS
SELECT * FROM (
    SELECT kind, node, "group", broker, topic, queue_id, queue_offset, msg_id, ts, attrs['reset'] AS reset,
        lag(queue_offset) OVER numbered AS previous, lag(ts) OVER numbered AS from_ts
    FROM named WHERE kind IN ('deliver', 'offset_commit') AND queue_offset IS NOT NULL
    WINDOW numbered AS (PARTITION BY kind, node, "group", broker, topic, queue_id ORDER BY seq)
) WHERE queue_offset < previous OR (kind = 'deliver' AND queue_offset > previous + 1);

CREATE TEMP TABLE odd AS
SELECT * FROM steps WHERE kind = 'deliver' AND NOT because(
    ['group ' || "group", 'node ' || node, 'broker ' || broker, 'queue ' || concat_ws(' ', "group", broker, topic, queue_id)],
    from_ts, ts);

CREATE TEMP TABLE skipped AS
SELECT j.broker, j.topic, j.queue_id, d.queue_offset, max(d.msg_id) AS msg_id, j."group"
FROM odd j JOIN named d ON d.kind = 'deliver' AND d.broker = j.broker AND d.topic = j.topic AND d.queue_id = j.queue_id
    AND d.queue_offset > j.previous AND d.queue_offset < j.queue_offset
WHERE j.queue_offset > j.previous
GROUP BY j.node, j."group", j.broker, j.topic, j.queue_id, d.queue_offset, j.from_ts, j.ts
HAVING NOT bool_or(d.node = j.node AND d."group" = j."group");

WITH sole AS (
    SELECT msg_id, topic, unnest(places) AS spot FROM messages WHERE len(places) = 1
), by_message(invariant, rule, msg_id, "group") AS (
    SELECT 'FLUSH-1', 'acked-then-truncated', msg_id, NULL FROM messages
    WHERE acked > 0 AND appends > 0 AND cut = appends AND sync_appends > 0
    UNION ALL
    SELECT 'DELIV-1', 'acked-then-truncated', msg_id, "group" FROM missing
    WHERE appends > 0 AND cut = appends AND async_appends <> appends
    UNION ALL
    SELECT 'DELIV-1', 'lost-write', msg_id, "group" FROM passed
    UNION ALL
    SELECT 'DELIV-2', 'phantom', msg_id, NULL FROM messages WHERE deliveries > 0 AND sends = 0
)
SELECT invariant, rule, spot.broker AS broker, coalesce(sole.topic, messages.topic) AS topic,
    spot.queue_id AS queue_id, spot.queue_offset AS queue_offset, msg_id, "group"
FROM by_message JOIN messages USING (msg_id) LEFT JOIN sole USING (msg_id)
UNION ALL
SELECT DISTINCT 'DELIV-3', 'duplicate-delivery', broker, topic, queue_id, queue_offset, msg_id, "group" FROM repeats
WHERE NOT because(
    ['message ' || "group" || ' ' || msg_id, 'group ' || "group", 'node ' || node, 'broker ' || broker,
    'queue ' || concat_ws(' ', "group", broker, topic, queue_id)], from_ts, ts)
UNION ALL
SELECT 'DELIV-3', 'duplicate-offset', broker, topic, queue_id, NULL, msg_id, "group" FROM spread
WHERE (own > 1 AND NOT again)
    OR (retried > 0 AND NOT because(['message ' || "group" || ' ' || msg_id], from_ts, to_ts))
UNION ALL
SELECT 'DELIV-4', 'nonmonotonic-poll', broker, topic, queue_id, queue_offset, msg_id, "group" FROM odd
WHERE queue_offset < previous
UNION ALL
SELECT 'DELIV-4', 'poll-skip', broker, topic, queue_id, queue_offset, msg_id, "group" FROM skipped
UNION ALL
SELECT DISTINCT 'DELIV-5', 'offset-regression', broker, topic, queue_id, queue_offset, NULL, "group" FROM steps
WHERE kind = 'offset_commit' AND reset IS DISTINCT FROM 'true'
    AND NOT because(['broker ' || broker], from_ts, ts);
