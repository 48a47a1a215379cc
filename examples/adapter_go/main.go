// An adapter of mqproof with basic operations: flush, offsets and delivery, with the client in client.go.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

type object = map[string]any

type args struct {
	Queues, Count           int
	Queue                   int    `json:"queue_id"`
	MsgID                   string `json:"msg_id"`
	Tag, Expression, Member string
	Body                    []byte
	Offset                  int64
	Commit                  *int64
	HoldMs                  int   `json:"hold_ms"`
	TimeMs                  int64 `json:"time_ms"`
	Oneway, Unregister      bool
}

type adapter struct {
	broker, topic, group string
	client               *client
	members              map[string]*client
	notified             sync.Map
	pulling              chan *command
}

func main() {
	a := &adapter{broker: os.Args[1], members: map[string]*client{}, client: dial(os.Args[1], nil)}
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var request struct {
			ID     int
			Method string
			Args   args
		}
		if err := json.Unmarshal(line, &request); err != nil {
			panic(err)
		}
		answer := a.answer(request.Method, request.Args)
		answer["id"] = request.ID
		text, _ := json.Marshal(answer)
		fmt.Println(string(text))
	}
}

func (a *adapter) answer(method string, in args) (answer object) {
	defer func() {
		if failure := recover(); failure != nil {
			answer = object{"error": object{"kind": "target", "message": fmt.Sprint(failure)}}
		}
	}()
	return object{"result": a.call(method, in)}
}

func (a *adapter) call(method string, in args) any {
	from := a.client
	if in.Member != "" {
		from = a.members[in.Member]
	}
	switch method {
	case "hello":
		return object{"protocol": 1, "operations": "basic"}
	case "open":
		return a.open(in.Queues)
	case "send":
		return a.send(in)
	case "pull":
		return pulled(a.pull(from, in))
	case "start_pull":
		a.pulling = make(chan *command, 1)
		go func() { a.pulling <- a.pull(a.client, in) }()
	case "end_pull":
		return pulled(<-a.pulling)
	case "commit":
		commit := a.queue(in.Queue, "consumerGroup", a.group, "commitOffset", in.Offset)
		if !in.Oneway {
			return from.request(15, nil, commit).Code
		}
		from.write(15, 2, nil, commit)
	case "query":
		found := from.request(14, nil, a.queue(in.Queue, "consumerGroup", a.group))
		if found.Code == 22 { // not found
			return nil
		}
		return found.number("offset")
	case "min_offset":
		return from.request(31, nil, a.queue(in.Queue)).number("offset")
	case "max_offset":
		return from.request(30, nil, a.queue(in.Queue)).number("offset")
	case "search":
		return from.request(29, nil, a.queue(in.Queue, "timestamp", in.TimeMs)).number("offset")
	case "join":
		a.join(in.Member)
	case "leave":
		if in.Unregister {
			from.request(35, nil, fields("clientID", a.clientID(in.Member), "consumerGroup", a.group))
		}
		a.quit(in.Member)
	case "members":
		return from.request(38, nil, fields("consumerGroup", a.group)).list("consumerIdList")
	case "notified":
		names := []string{}
		a.notified.Range(func(member, _ any) bool {
			a.notified.Delete(member)
			names = append(names, member.(string))
			return true
		})
		return names
	case "close":
		for member := range a.members {
			a.quit(member)
		}
	default:
		panic("no method " + method)
	}
	return nil
}

func (a *adapter) open(queues int) string {
	a.topic = fmt.Sprintf("conform_go_%d", time.Now().UnixNano())
	a.group = a.topic + "_group"
	a.client.request(17, nil, fields("topic", a.topic, "defaultTopic", "TBW102", "readQueueNums", queues,
		"writeQueueNums", queues, "perm", 6, "topicFilterType", "SINGLE_TAG", "topicSysFlag", 0)).accepted()
	a.client.request(200, object{"groupName": a.group, "consumeEnable": true}, nil).accepted()
	return a.topic
}

func (a *adapter) send(in args) any {
	properties := "UNIQ_KEY\x01" + in.MsgID + "\x02"
	if in.Tag != "" {
		properties += "TAGS\x01" + in.Tag + "\x02"
	}
	answer := a.client.request(10, in.Body, a.queue(in.Queue, "producerGroup", "conform", "defaultTopic", "TBW102",
		"defaultTopicQueueNums", 4, "sysFlag", 0, "bornTimestamp", 1, "flag", 0, "properties", properties,
		"reconsumeTimes", 0, "unitMode", false, "batch", false))
	if answer.ExtFields["queueOffset"] == "" {
		return object{"code": answer.Code}
	}
	return object{"code": answer.Code, "offset": answer.number("queueOffset")}
}

func (a *adapter) pull(from *client, in args) *command {
	kind, flags, commit := "TAG", 4, int64(0)
	expression, isSQL := strings.CutPrefix(in.Expression, "sql:")
	if isSQL {
		kind = "SQL92"
	}
	if in.HoldMs > 0 {
		flags |= 2
	}
	if in.Commit != nil {
		flags, commit = flags|1, *in.Commit
	}
	return from.request(11, nil, a.queue(in.Queue, "consumerGroup", a.group, "queueOffset", in.Offset,
		"maxMsgNums", in.Count, "sysFlag", flags, "commitOffset", commit, "suspendTimeoutMillis", in.HoldMs,
		"subscription", expression, "subVersion", 1, "expressionType", kind))
}

func pulled(answer *command) any {
	return object{"code": answer.Code, "messages": answer.records(), "next_offset": answer.number("nextBeginOffset"),
		"min_offset": answer.number("minOffset"), "max_offset": answer.number("maxOffset")}
}

func (a *adapter) clientID(member string) string {
	return "127.0.0.1@" + a.topic + "_" + member
}

func (a *adapter) join(member string) {
	a.members[member] = dial(a.broker, func() { a.notified.Store(member, true) })
	subscription := object{"topic": a.topic, "subString": "*", "subVersion": 1, "expressionType": "TAG"}
	data := object{"groupName": a.group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
		"consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", "subscriptionDataSet": []object{subscription}}
	a.members[member].request(34, object{"clientID": a.clientID(member), "consumerDataSet": []object{data},
		"producerDataSet": []object{}}, nil).accepted()
}

func (a *adapter) quit(member string) {
	a.members[member].conn.Close()
	delete(a.members, member)
}

// queue returns the fields of a request about one queue.
func (a *adapter) queue(id int, more ...any) map[string]string {
	return fields(append([]any{"topic", a.topic, "queueId", id}, more...)...)
}
