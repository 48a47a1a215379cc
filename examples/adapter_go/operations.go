package main

import (
	"strings"
	"time"
)

// queue returns the fields of a request about one queue.
func (a *adapter) queue(id int, more ...any) map[string]string {
	return fields(append([]any{"topic", a.topic, "queueId", id}, more...)...)
}

func (a *adapter) offset(code, queue int) int64 {
	return a.client.accepted(code, nil, a.queue(queue)).number("offset")
}

func (a *adapter) pull(from *client, in args, holdMs int) *command {
	expression, kind, flags, commit, count := in.Expression, "TAG", 4, 0, in.Count+in.MaxCount
	if expression == "" && a.suite != "offsets" {
		expression = "*"
	}
	if sql, isSQL := strings.CutPrefix(expression, "sql:"); isSQL {
		expression, kind = sql, "SQL92"
	}
	if holdMs > 0 {
		flags |= 2
	}
	if in.Commit != nil {
		flags, commit = flags|1, *in.Commit
	}
	return from.request(11, nil, a.queue(in.Queue, "consumerGroup", a.group, "queueOffset", in.Offset,
		"maxMsgNums", count, "sysFlag", flags, "commitOffset", commit, "suspendTimeoutMillis", holdMs,
		"subscription", expression, "subVersion", 1, "expressionType", kind))
}

func (a *adapter) pulled(answer *command, named string) any {
	found := []object{}
	for _, each := range answer.records() {
		one := object{"msg_id": string(each.body), "offset": each.queueOffset}
		if a.suite == "offsets" {
			one["tag"] = each.properties["TAGS"]
		} else if a.suite == "flush" {
			one = object{"msg_id": each.properties["UNIQ_KEY"], "body": each.body, "topic": each.topic,
				"queue_id": each.queueID, "queue_offset": each.queueOffset}
			if each.topic == a.topic {
				one["topic"] = named
			}
		}
		found = append(found, one)
	}
	if a.suite == "delivery" {
		return found
	}
	statuses := pulled
	if a.suite == "flush" {
		statuses = flushPulled
	}
	status, isKnown := statuses[answer.Code]
	if !isKnown {
		panic(answer.refusal())
	}
	return object{"status": status, "messages": found, "next_offset": answer.number("nextBeginOffset"),
		"min_offset": answer.number("minOffset"), "max_offset": answer.number("maxOffset")}
}

func (a *adapter) hold(in args) any {
	type held struct {
		answer *command
		at     time.Time
	}
	pulling := make(chan held, 1)
	go func() { pulling <- held{a.pull(a.client, in, holdMs), time.Now()} }()
	time.Sleep(20 * time.Millisecond)
	stored := []object{}
	for _, each := range in.Then {
		offset := a.send(args{Queue: in.Queue, MsgID: each[0], Tag: each[1]})
		stored = append(stored, object{"msg_id": each[0], "tag": each[1], "offset": offset})
	}
	sentAt := time.Now()
	found := <-pulling
	return object{"answer": a.pulled(found.answer, ""), "sent": stored,
		"waited_s": max(0, found.at.Sub(sentAt).Seconds())}
}

func (a *adapter) search(in args) any {
	times := [][2]int64{}
	next := args{Queue: in.Queue, Offset: int(a.offset(31, in.Queue)), Count: 32, Expression: "*"}
	for {
		found := a.pull(a.client, next, 0).records()
		if len(found) == 0 {
			break
		}
		for _, each := range found {
			times = append(times, [2]int64{each.queueOffset, each.storedMs})
			next.Offset = int(each.queueOffset) + 1
		}
	}
	at := time.Now().UnixMilli()
	if len(times) > 0 {
		at = times[in.Place%len(times)][1]
	}
	at += in.ShiftMs
	offset := a.client.accepted(29, nil, a.queue(in.Queue, "timestamp", at)).number("offset")
	return object{"times": times, "requested_ms": at, "offset": offset}
}

func (a *adapter) clientID(member string) string {
	return "127.0.0.1@" + a.topic + "_" + member
}

func (a *adapter) join(member string) {
	made := dial(a.broker, func() { a.notified.Store(member, true) })
	a.members[member] = made
	subscription := object{"topic": a.topic, "subString": "*", "subVersion": 1, "expressionType": "TAG"}
	data := object{"groupName": a.group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
		"consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", "subscriptionDataSet": []object{subscription}}
	made.accepted(34, object{"clientID": a.clientID(member), "consumerDataSet": []object{data},
		"producerDataSet": []object{}}, nil)
}

func (a *adapter) quit(member string) {
	a.members[member].conn.Close()
	delete(a.members, member)
}

// names returns the members of the group, as the broker reports them.
func (a *adapter) names(from *client) []string {
	answer := from.request(38, nil, fields("consumerGroup", a.group))
	names := []string{}
	if answer.Code != 0 { // the group has no members
		return names
	}
	for _, id := range answer.list("consumerIdList") {
		names = append(names, id[strings.LastIndex(id, "_")+1:])
	}
	return names
}

func (a *adapter) notifications(expected []string) []string {
	await(func() bool {
		for _, member := range expected {
			if _, isNotified := a.notified.Load(member); !isNotified {
				return false
			}
		}
		return true
	})
	found := []string{}
	a.notified.Range(func(member, _ any) bool {
		if a.members[member.(string)] != nil {
			found = append(found, member.(string))
		}
		a.notified.Delete(member)
		return true
	})
	return found
}
