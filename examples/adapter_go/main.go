// An adapter of mqproof: the suites flush, offsets and delivery, with a small client of its own (client.go).
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

type object = map[string]any

var (
	sent        = map[int]string{0: "SEND_OK", 10: "FLUSH_DISK_TIMEOUT", 11: "SLAVE_NOT_AVAILABLE", 12: "FLUSH_SLAVE_TIMEOUT"}
	refused     = map[int]bool{2: true, 13: true, 14: true, 16: true, 17: true} // the message is certainly not stored
	flushPulled = map[int]string{0: "FOUND", 19: "NO_NEW", 21: "OFFSET_MOVED"}
	pulled      = map[int]string{0: "found", 19: "no new message", 20: "no matched message", 21: "offset moved"}
	master      = regexp.MustCompile(`"brokerAddrs":\{"?0"?:"([^"]+)"`)
)

type args struct {
	Suite, Topic, Tag, Expression, Member, Asker, Body string
	MsgID                                              string `json:"msg_id"`
	Queue                                              int    `json:"queue_id"`
	MaxCount                                           int    `json:"max_count"`
	Offset, Count, Place                               int
	ShiftMs                                            int64 `json:"shift_ms"`
	Commit                                             *int
	Then                                               [][2]string
	Expected                                           []string
	Setup                                              struct{ Queues int }
}

type adapter struct {
	suite, nameServer, broker, topic, group string
	client                                  *client
	members                                 map[string]*client
	notified                                sync.Map
}

func main() {
	a := &adapter{nameServer: os.Args[1], members: map[string]*client{}}
	input := bufio.NewReader(os.Stdin)
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			return
		}
		var request struct {
			ID     int
			Method string
			Args   args
		}
		answer := object{}
		if err := json.Unmarshal(line, &request); err != nil {
			answer["error"] = object{"kind": "target", "message": err.Error()}
		} else {
			a.answer(answer, request.Method, request.Args)
		}
		answer["id"] = request.ID
		text, _ := json.Marshal(answer)
		fmt.Println(string(text))
	}
}

func (a *adapter) answer(answer object, method string, in args) {
	defer func() {
		if failure := recover(); failure != nil {
			answer["error"] = object{"kind": "target", "message": fmt.Sprint(failure)}
		}
	}()
	if method == "hello" && !strings.Contains("flush offsets delivery", in.Suite) {
		answer["error"] = object{"kind": "unsupported", "message": "flush, offsets and delivery are supported"}
		return
	}
	answer["result"] = a.call(method, in)
}

func (a *adapter) call(method string, in args) any {
	from := a.client
	if in.Member != "" {
		from = a.members[in.Member]
	}
	switch method {
	case "hello":
		a.suite = in.Suite
		if in.Suite == "flush" {
			return object{"protocol": 1, "capabilities": []string{"commit_offset"}}
		}
		return object{"protocol": 1, "capabilities": []string{}}
	case "open":
		a.open(in.Setup.Queues)
	case "send":
		return a.send(in)
	case "pull":
		return a.pulled(a.pull(from, in, 0), in.Topic)
	case "hold":
		return a.hold(in)
	case "commit", "commit_offset":
		from.accepted(15, nil, a.queue(in.Queue, "consumerGroup", a.group, "commitOffset", in.Offset))
		if method == "commit_offset" {
			return true
		}
	case "commit_oneway":
		from.write(15, 2, nil, a.queue(in.Queue, "consumerGroup", a.group, "commitOffset", in.Offset))
	case "query", "query_offset":
		found := a.client.request(14, nil, a.queue(in.Queue, "consumerGroup", a.group))
		if found.Code == 22 && method == "query" {
			return nil
		} else if found.Code == 22 {
			return 0
		}
		return found.number("offset")
	case "search":
		return a.search(in)
	case "min_offset":
		return a.offset(31, in.Queue)
	case "max_offset":
		return a.offset(30, in.Queue)
	case "join":
		a.join(in.Member)
	case "leave":
		from.accepted(35, nil, fields("clientID", a.clientID(in.Member), "consumerGroup", a.group))
		a.quit(in.Member)
	case "die":
		a.quit(in.Member)
		await(func() bool { return !strings.Contains(fmt.Sprint(a.names(a.client)), in.Member) })
	case "members":
		return a.names(a.members[in.Asker])
	case "notified":
		return a.notifications(in.Expected)
	case "close":
		for member := range a.members {
			a.quit(member)
		}
	default:
		panic("no method " + method)
	}
	return nil
}

func (a *adapter) open(queues int) {
	if queues == 0 { // only flush says how many
		queues = 3
	}
	if a.client == nil {
		names := dial(a.nameServer, nil)
		defer names.conn.Close()
		found := master.FindSubmatch(names.accepted(106, nil, nil).Body)
		if found == nil {
			panic("no master at " + a.nameServer)
		}
		a.broker = string(found[1])
		a.client = dial(a.broker, nil)
	}
	a.topic = fmt.Sprintf("conform_go_%d", time.Now().UnixNano())
	a.group = a.topic + "_group"
	a.client.accepted(17, nil, fields("topic", a.topic, "defaultTopic", "TBW102", "readQueueNums", queues,
		"writeQueueNums", queues, "perm", 6, "topicFilterType", "SINGLE_TAG", "topicSysFlag", 0))
	a.client.accepted(200, object{"groupName": a.group, "consumeEnable": true, "consumeFromMinEnable": true,
		"consumeBroadcastEnable": true, "retryQueueNums": 1, "retryMaxTimes": 16}, nil)
}

func (a *adapter) send(in args) any {
	properties := "UNIQ_KEY\x01" + in.MsgID + "\x02"
	if in.Tag != "" {
		properties += "TAGS\x01" + in.Tag + "\x02"
	}
	body := []byte(in.MsgID)
	if a.suite == "flush" {
		_ = json.Unmarshal([]byte(strconv.Quote(in.Body)), &body) // base64
	}
	time.Sleep(2 * time.Millisecond) // messages are stored at different times
	answer := a.client.request(10, body, a.queue(in.Queue, "producerGroup", "conform", "defaultTopic", "TBW102",
		"defaultTopicQueueNums", 4, "sysFlag", 0, "bornTimestamp", 1, "flag", 0, "properties", properties,
		"reconsumeTimes", 0, "unitMode", false, "batch", false))
	status, isStored := sent[answer.Code]
	if !isStored && a.suite == "flush" {
		outcome := map[bool]string{true: "failed", false: "indeterminate"}[refused[answer.Code]]
		return object{"outcome": outcome, "status": fmt.Sprintf("code %d", answer.Code)}
	} else if !isStored {
		panic(answer.refusal())
	}
	offset := answer.number("queueOffset")
	await(func() bool { return a.offset(30, in.Queue) > offset }) // brokers answer before it is in its queue
	if a.suite == "flush" {
		return object{"outcome": "ok", "status": status, "queue_offset": offset}
	}
	return offset
}
