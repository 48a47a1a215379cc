// The Go client of Apache RocketMQ, driven over standard input and output.
//
// conformance/adapters/clients/driver_client.py describes the commands and the events. The arguments are the name
// server, and "trace" for clients that trace.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const sendTimeout = 20 * time.Second

type event map[string]any

// The client prints to standard output as well, so that the events have a copy of it.
var (
	printing sync.Mutex
	failed   sync.Map
)

func emit(kind string, members event) {
	printing.Lock()
	defer printing.Unlock()
	text, _ := json.Marshal(members)
	line := `{"event":"` + kind + `"`
	if len(members) > 0 {
		line += "," + string(text[1:])
	} else {
		line += "}"
	}
	fmt.Fprintln(os.Stdout, line)
}

type driver struct {
	names        primitive.NamesrvAddr
	traces       bool
	normal       rocketmq.Producer
	ordered      rocketmq.Producer
	transactions rocketmq.TransactionProducer
	closers      map[string]func() error
}

func main() {
	rlog.SetLogLevel("error")
	names, err := primitive.NewNamesrvAddr(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	d := &driver{names: names, traces: len(os.Args) > 2 && os.Args[2] == "trace", closers: map[string]func() error{}}
	emit("ready", nil)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 1<<20)
	for lines.Scan() {
		words := strings.Split(lines.Text(), " ")
		for i, word := range words {
			words[i], _ = url.PathUnescape(word)
		}
		if err := d.obey(words); err != nil {
			emit("error", event{"message": err.Error()})
		} else {
			emit("done", nil)
		}
	}
	for _, closer := range d.closers {
		_ = closer()
	}
	if d.transactions != nil {
		_ = d.transactions.Shutdown()
	}
	if d.normal != nil {
		_ = d.normal.Shutdown()
	}
	if d.ordered != nil {
		_ = d.ordered.Shutdown()
	}
}

func (d *driver) obey(words []string) error {
	switch words[0] {
	case "put":
		return d.put(words[1], words[2], words[3], words[4], words[5])
	case "batch":
		return d.batch(words[1], words[2], number(words[3]))
	case "burst":
		return d.burst(words[1], words[2], number(words[3]), number(words[4]))
	case "transactions":
		return d.startTransactions(words[1])
	case "transact":
		return d.transact(words[1], words[2], words[3])
	case "subscribe":
		most := -1
		if len(words) > 6 {
			most = number(words[6])
		}
		return d.subscribe(words[1], words[2], words[3], words[4], words[5], most)
	case "pull":
		return d.pull(words[1], words[2])
	case "answer":
		return d.answer(words[1], words[2], words[3])
	case "request":
		return d.request(words[1], words[2], number(words[3]))
	case "close":
		closer := d.closers[words[1]]
		delete(d.closers, words[1])
		if closer == nil {
			return errors.New("no consumer " + words[1])
		}
		return closer()
	}
	return errors.New("unsupported command " + words[0])
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return value
}

// Sending.

func (d *driver) newProducer(instance string, options ...producer.Option) (rocketmq.Producer, error) {
	options = append(options, producer.WithNameServer(d.names), producer.WithGroupName("driver_producer"),
		producer.WithInstanceName(instance), producer.WithSendMsgTimeout(sendTimeout), producer.WithRetry(2))
	if d.traces {
		options = append(options, producer.WithTrace(d.tracing("driver_producer")))
	}
	made, err := rocketmq.NewProducer(options...)
	if err != nil {
		return nil, err
	}
	return made, made.Start()
}

func (d *driver) tracing(group string) *primitive.TraceConfig {
	return &primitive.TraceConfig{
		GroupName: group, Access: primitive.Local, NamesrvAddrs: d.names,
		Resolver: primitive.NewPassthroughResolver(d.names),
	}
}

func (d *driver) producer() (rocketmq.Producer, error) {
	var err error
	if d.normal == nil {
		d.normal, err = d.newProducer("normal")
	}
	return d.normal, err
}

func newMessage(topic, body string) *primitive.Message {
	return primitive.NewMessage(topic, []byte(body)).WithKeys([]string{body})
}

func (d *driver) put(mode, topic, body, tag, properties string) error {
	message := newMessage(topic, body).WithTag(tag)
	for _, pair := range strings.Split(properties, "&") {
		if name, value, found := strings.Cut(pair, "="); found {
			message.WithProperty(name, value)
		}
	}
	sender, err := d.producer()
	if err != nil {
		return err
	}
	kind, value, _ := strings.Cut(mode, "-")
	switch kind {
	case "sync":
	case "async":
		return sendAsync(sender, message)
	case "oneway":
		return sender.SendOneWay(context.Background(), message)
	case "level":
		message.WithDelayTimeLevel(number(value))
	case "sec":
		message.WithProperty("TIMER_DELAY_SEC", value)
	case "ms":
		message.WithProperty("TIMER_DELAY_MS", value)
	case "at":
		message.WithDelayTimestamp(time.UnixMilli(int64(number(value))))
	case "key":
		if d.ordered == nil {
			if d.ordered, err = d.newProducer("ordered", producer.WithQueueSelector(producer.NewHashQueueSelector())); err != nil {
				return err
			}
		}
		sender = d.ordered
		message.WithShardingKey(value)
	default:
		return errors.New("unsupported mode " + mode)
	}
	result, err := sender.SendSync(context.Background(), message)
	return sent(result, err)
}

func sendAsync(sender rocketmq.Producer, message *primitive.Message) error {
	done := make(chan error, 1)
	err := sender.SendAsync(context.Background(), func(_ context.Context, result *primitive.SendResult, err error) {
		done <- sent(result, err)
	}, message)
	if err != nil {
		return err
	}
	return <-done
}

func sent(result *primitive.SendResult, err error) error {
	if err != nil {
		emit("not-sent", event{"message": err.Error()})
		return nil
	}
	emit("sent", event{"status": status(result), "msgId": result.MsgID, "offsetMsgId": result.OffsetMsgID,
		"queueId": result.MessageQueue.QueueId, "queueOffset": result.QueueOffset, "handle": nil})
	return nil
}

func status(result *primitive.SendResult) string {
	switch result.Status {
	case primitive.SendOK:
		return "SEND_OK"
	case primitive.SendFlushDiskTimeout:
		return "FLUSH_DISK_TIMEOUT"
	case primitive.SendFlushSlaveTimeout:
		return "FLUSH_SLAVE_TIMEOUT"
	case primitive.SendSlaveNotAvailable:
		return "SLAVE_NOT_AVAILABLE"
	}
	return "UNKNOWN"
}

func (d *driver) batch(topic, prefix string, count int) error {
	sender, err := d.producer()
	if err != nil {
		return err
	}
	var messages []*primitive.Message
	for i := 0; i < count; i++ {
		messages = append(messages, newMessage(topic, prefix+strconv.Itoa(i)))
	}
	result, err := sender.SendSync(context.Background(), messages...)
	return sent(result, err)
}

func (d *driver) burst(topic, prefix string, count, gapMs int) error {
	sender, err := d.producer()
	if err != nil {
		return err
	}
	go func() {
		for i := 0; i < count; i++ {
			body := prefix + strconv.Itoa(i)
			result, err := sender.SendSync(context.Background(), newMessage(topic, body))
			if err != nil {
				emit("burst", event{"body": body, "status": "UNKNOWN"})
			} else {
				emit("burst", event{"body": body, "status": status(result)})
			}
			time.Sleep(time.Duration(gapMs) * time.Millisecond)
		}
		emit("burst-end", nil)
	}()
	return nil
}

func (d *driver) request(topic, body string, ms int) error {
	sender, err := d.producer()
	if err != nil {
		return err
	}
	reply, err := sender.Request(context.Background(), time.Duration(ms)*time.Millisecond, newMessage(topic, body))
	if err != nil {
		emit("no-reply", event{"message": err.Error()})
		return nil
	}
	emit("reply", event{"body": string(reply.Body)})
	return nil
}

// Transactions: the tag of a message says what its local transaction and its checks return.

type listener struct{}

func (listener) ExecuteLocalTransaction(message *primitive.Message) primitive.LocalTransactionState {
	tag := message.GetTags()
	emit("executed", event{"body": string(message.Body)})
	if strings.HasPrefix(tag, "hang") {
		select {}
	}
	switch tag {
	case "commit":
		return primitive.CommitMessageState
	case "rollback":
		return primitive.RollbackMessageState
	}
	return primitive.UnkonwnState
}

func (listener) CheckLocalTransaction(message *primitive.MessageExt) primitive.LocalTransactionState {
	emit("checked", event{"body": string(message.Body)})
	if strings.HasSuffix(message.GetTags(), "commit") {
		return primitive.CommitMessageState
	}
	return primitive.RollbackMessageState
}

func (d *driver) startTransactions(group string) error {
	made, err := rocketmq.NewTransactionProducer(listener{}, producer.WithNameServer(d.names),
		producer.WithGroupName(group), producer.WithInstanceName("transactions"),
		producer.WithSendMsgTimeout(sendTimeout))
	if err != nil {
		return err
	}
	d.transactions = made
	return made.Start()
}

func (d *driver) transact(topic, body, tag string) error {
	message := newMessage(topic, body).WithTag(tag)
	if strings.HasPrefix(tag, "hang") {
		go func() { _, _ = d.transactions.SendMessageInTransaction(context.Background(), message) }()
		return nil
	}
	result, err := d.transactions.SendMessageInTransaction(context.Background(), message)
	if err != nil {
		return sent(nil, err)
	}
	return sent(result.SendResult, nil)
}

// Consuming.

func selector(expression string) consumer.MessageSelector {
	if sql, found := strings.CutPrefix(expression, "sql:"); found {
		return consumer.MessageSelector{Type: consumer.SQL92, Expression: sql}
	}
	return consumer.MessageSelector{Type: consumer.TAG, Expression: expression}
}

func (d *driver) subscribe(name, mode, group, topic, expression string, redeliveriesMax int) error {
	if mode == "lite" {
		return d.lite(name, group, topic, expression)
	}
	options := []consumer.Option{
		consumer.WithNameServer(d.names), consumer.WithGroupName(group), consumer.WithInstance(name),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithConsumerOrder(mode == "orderly"),
	}
	if mode == "broadcast" {
		options = append(options, consumer.WithConsumerModel(consumer.BroadCasting))
	}
	if redeliveriesMax >= 0 {
		options = append(options, consumer.WithMaxReconsumeTimes(int32(redeliveriesMax)))
	}
	if d.traces {
		options = append(options, consumer.WithTrace(d.tracing(group)))
	}
	made, err := rocketmq.NewPushConsumer(options...)
	if err != nil {
		return err
	}
	again := consumer.ConsumeRetryLater
	if mode == "orderly" {
		again = consumer.SuspendCurrentQueueAMoment
	}
	listen := func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		if consumed(name, messages) {
			return consumer.ConsumeSuccess, nil
		}
		return again, nil
	}
	if err := made.Subscribe(topic, selector(expression), listen); err != nil {
		return err
	}
	d.closers[name] = made.Shutdown
	return made.Start()
}

func (d *driver) lite(name, group, topic, expression string) error {
	made, err := rocketmq.NewPullConsumer(consumer.WithNameServer(d.names), consumer.WithGroupName(group),
		consumer.WithInstance(name), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		return err
	}
	if err := made.Subscribe(topic, selector(expression)); err != nil {
		return err
	}
	if err := made.Start(); err != nil {
		return err
	}
	ended, stopping := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		for {
			select {
			case <-stopping:
				return
			default:
			}
			batch, err := made.Poll(context.Background(), 200*time.Millisecond)
			if err != nil || batch == nil {
				time.Sleep(20 * time.Millisecond)
				continue
			}
			consumed(name, batch.GetMsgList())
			made.ACK(context.Background(), batch, consumer.ConsumeSuccess)
		}
	}()
	d.closers[name] = func() error {
		close(stopping)
		<-ended
		return made.Shutdown()
	}
	return nil
}

func (d *driver) pull(group, topic string) error {
	made, err := rocketmq.NewPullConsumer(consumer.WithNameServer(d.names), consumer.WithGroupName(group),
		consumer.WithInstance("pull"))
	if err != nil {
		return err
	}
	// The client starts only with a subscription.
	if err := made.Subscribe(topic, selector("*")); err != nil {
		return err
	}
	if err := made.Start(); err != nil {
		return err
	}
	defer func() { _ = made.Shutdown() }()
	queues, err := made.GetTopicRouteInfo(topic)
	if err != nil {
		return err
	}
	for _, queue := range queues {
		next := int64(0)
		for {
			result, err := made.PullFrom(context.Background(), queue, next, 32)
			if err != nil {
				return err
			}
			if result.Status != primitive.PullFound {
				emit("queue-end", event{"queueId": queue.QueueId, "next": next, "max": result.MaxOffset, "min": result.MinOffset})
				break
			}
			consumed("pull", result.GetMessageExts())
			next = result.NextBeginOffset
			if next >= result.MaxOffset { // the next pull would wait for a new message
				emit("queue-end", event{"queueId": queue.QueueId, "next": next, "max": result.MaxOffset, "min": result.MinOffset})
				break
			}
		}
	}
	return nil
}

func (d *driver) answer(name, group, topic string) error {
	replier, err := d.producer()
	if err != nil {
		return err
	}
	made, err := rocketmq.NewPushConsumer(consumer.WithNameServer(d.names), consumer.WithGroupName(group),
		consumer.WithInstance(name), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	if err != nil {
		return err
	}
	listen := func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, message := range messages {
			reply, err := consumer.CreateReplyMessage(message, append([]byte("re:"), message.Body...))
			if err == nil {
				_, err = replier.SendSync(context.Background(), reply)
			}
			if err != nil {
				emit("not-replied", event{"message": err.Error()})
			}
		}
		return consumer.ConsumeSuccess, nil
	}
	if err := made.Subscribe(topic, consumer.MessageSelector{}, listen); err != nil {
		return err
	}
	d.closers[name] = made.Shutdown
	return made.Start()
}

func consumed(name string, messages []*primitive.MessageExt) bool {
	ok := true
	for _, message := range messages {
		emit("message", event{
			"consumer": name, "topic": message.Topic, "msgId": message.MsgId, "body": string(message.Body),
			"tag": message.GetTags(), "keys": message.GetKeys(), "queueId": queueId(message),
			"queueOffset": message.QueueOffset, "reconsumeTimes": message.ReconsumeTimes,
			"bornTimestamp": message.BornTimestamp, "storeTimestamp": message.StoreTimestamp,
			"receivedMs": time.Now().UnixMilli(),
		})
		if message.GetTags() == "dead" {
			ok = false
		}
		if message.GetTags() == "fail" && message.ReconsumeTimes == 0 {
			_, seen := failed.LoadOrStore(name+message.GetKeys()+message.MsgId, true)
			ok = ok && seen
		}
	}
	return ok
}

func queueId(message *primitive.MessageExt) int {
	if message.Queue == nil {
		return -1
	}
	return message.Queue.QueueId
}
