-- The questions of the audit's checks of events, written by hand for DuckDB: the other side of `mqproof bench
-- audit`. They count suspects and explain none; what a crash took is left out.

-- Lost, duplicated, phantom: one aggregation by message.
WITH audience AS (
    SELECT topic, count(DISTINCT "group") AS owed FROM log WHERE kind = 'deliver' GROUP BY topic
), messages AS (
    SELECT msg_id, any_value(topic) FILTER (kind <> 'deliver') AS topic,
        count(*) FILTER (kind = 'send') AS sends,
        count(*) FILTER (kind = 'send_ack' AND status = 'SEND_OK') AS acked,
        count(*) FILTER (kind = 'send_fail' AND status = 'unknown') AS unknown,
        count(*) FILTER (kind = 'append') AS appends,
        count(*) FILTER (kind = 'deliver') AS deliveries,
        bit_xor(hash("group")) FILTER (kind = 'deliver') AS handed
    FROM log WHERE msg_id IS NOT NULL GROUP BY msg_id
)
SELECT count(*) FILTER (acked > 0 AND deliveries < owed), count(*) FILTER (deliveries > owed),
    count(*) FILTER (deliveries > 0 AND sends = 0), bit_xor(handed), sum(unknown + appends)
FROM messages LEFT JOIN audience USING (topic);

-- Order of deliveries, and of committed offsets.
WITH steps AS (
    SELECT kind, queue_offset, lag(queue_offset) OVER (
        PARTITION BY kind, node, "group", attrs['broker'], topic, queue_id ORDER BY seq
    ) AS previous
    FROM log WHERE kind IN ('deliver', 'offset_commit')
)
SELECT count(*) FILTER (queue_offset < previous),
    count(*) FILTER (kind = 'deliver' AND queue_offset > previous + 1) FROM steps;

-- What the log consists of, and holes in it.
SELECT node, kind, count(*), min(seq), max(seq), min(ts), max(ts) FROM log GROUP BY node, kind;
