package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	limit  = 90 * time.Second // more than a pull may wait
	notify = 40
)

// command is a request or an answer of RocketMQ's remoting protocol, with a header in JSON.
type command struct {
	Code      int               `json:"code"`
	Language  string            `json:"language"`
	Version   int               `json:"version"`
	Opaque    int               `json:"opaque"`
	Flag      int               `json:"flag"`
	Remark    string            `json:"remark,omitempty"`
	ExtFields map[string]string `json:"extFields"`
	Body      []byte            `json:"-"`
}

func (c *command) accepted() {
	if c.Code != 0 {
		panic(fmt.Sprintf("refused with code %d, %s", c.Code, c.Remark))
	}
}

func (c *command) number(name string) int64 {
	number, err := strconv.ParseInt(c.ExtFields[name], 10, 64)
	if err != nil {
		panic(fmt.Sprintf("%v in the answer with code %d, %s", err, c.Code, c.Remark))
	}
	return number
}

func (c *command) list(name string) []string {
	found := map[string][]string{name: {}}
	if c.Code == 0 {
		_ = json.Unmarshal(c.Body, &found)
	}
	return found[name]
}

// record is a stored message.
type record struct {
	MsgID    string `json:"msg_id"`
	Tag      string `json:"tag"`
	Offset   uint64 `json:"offset"`
	Body     []byte `json:"body"`
	Topic    string `json:"topic"`
	QueueID  uint32 `json:"queue_id"`
	StoredMs uint64 `json:"stored_ms"`
}

// records returns the messages in the body of an answer.
func (c *command) records() []record {
	found, big := []record{}, binary.BigEndian
	for data := c.Body; len(data) >= 88; {
		one := data[:big.Uint32(data)]
		data = data[len(one):]
		bodyEnd := 88 + big.Uint32(one[84:])
		topicEnd := bodyEnd + 1 + uint32(one[bodyEnd])
		properties := map[string]string{}
		for _, pair := range strings.Split(string(one[topicEnd+2:]), "\x02") {
			name, value, _ := strings.Cut(pair, "\x01")
			properties[name] = value
		}
		found = append(found, record{MsgID: properties["UNIQ_KEY"], Tag: properties["TAGS"],
			Offset: big.Uint64(one[20:]), Body: one[88:bodyEnd], Topic: string(one[bodyEnd+1 : topicEnd]),
			QueueID: big.Uint32(one[12:]), StoredMs: big.Uint64(one[56:])})
	}
	return found
}

// client is one connection.
type client struct {
	conn     net.Conn
	lock     sync.Mutex
	opaque   int
	waiting  map[int]chan *command
	onNotify func()
}

func dial(address string, onNotify func()) *client {
	conn, err := net.DialTimeout("tcp", address, limit)
	if err != nil {
		panic(err.Error())
	}
	made := &client{conn: conn, waiting: map[int]chan *command{}, onNotify: onNotify}
	go made.read()
	return made
}

func (c *client) read() {
	for {
		var sizes [8]byte
		if _, err := io.ReadFull(c.conn, sizes[:]); err != nil {
			return
		}
		headSize := int(binary.BigEndian.Uint32(sizes[4:]) & 0xffffff)
		rest := make([]byte, binary.BigEndian.Uint32(sizes[:])-4)
		if _, err := io.ReadFull(c.conn, rest); err != nil {
			return
		}
		answer := &command{Body: rest[headSize:]}
		if json.Unmarshal(rest[:headSize], answer) != nil {
			return
		}
		if answer.Flag&1 == 0 { // a request of the broker
			if answer.Code == notify && c.onNotify != nil {
				c.onNotify()
			}
			continue
		}
		c.lock.Lock()
		if waiting := c.waiting[answer.Opaque]; waiting != nil {
			waiting <- answer
			delete(c.waiting, answer.Opaque)
		}
		c.lock.Unlock()
	}
}

// write sends a request. Flag 2 means that no answer is wanted.
func (c *client) write(code, flag int, body any, fields map[string]string) chan *command {
	content, isBytes := body.([]byte)
	if body != nil && !isBytes {
		content, _ = json.Marshal(body)
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	c.opaque++
	answer := make(chan *command, 1)
	c.waiting[c.opaque] = answer
	head, _ := json.Marshal(command{
		Code: code, Language: "OTHER", Version: 453, Opaque: c.opaque, Flag: flag, ExtFields: fields})
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(head)+len(content)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(head)))
	if _, err := c.conn.Write(append(append(frame, head...), content...)); err != nil {
		panic(err.Error())
	}
	return answer
}

func (c *client) request(code int, body any, fields map[string]string) *command {
	select {
	case answer := <-c.write(code, 0, body, fields):
		return answer
	case <-time.After(limit):
		panic(fmt.Sprintf("no answer to request %d in %v", code, limit))
	}
}

func fields(pairs ...any) map[string]string {
	found := map[string]string{}
	for at := 0; at < len(pairs); at += 2 {
		found[fmt.Sprint(pairs[at])] = fmt.Sprint(pairs[at+1])
	}
	return found
}
