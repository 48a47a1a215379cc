// Package audithooks records what Apache's Go client for RocketMQ sends and consumes, in an event log that
// `mqproof audit` reads.
//
//	hooks, err := audithooks.Open(audithooks.Settings{Directory: "/var/log/audit"})
//	defer hooks.Close()
//	producer.WithInterceptor(hooks.Producer("shop"))
//	consumer.WithInterceptor(hooks.Consumer("billing")), consumer.WithStrategy(hooks.Strategy(consumer.AllocateByAveragely))
//	hooks.Subscribed("billing", "Orders", consumer.MessageSelector{})
//
// Recording never waits for a disk: if the queue is full or a write fails, rows are dropped and counted, and the log
// has a `gap` row with their number.
package audithooks

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

const uniqueKey = "UNIQ_KEY"

// Hooks records the events of one process.
type Hooks struct {
	recorder *recorder
	mutex    sync.Mutex
	clients  map[string]string // consumer group to the client id, once the client has started
	queues   map[string]string // group, client and topic to the queues that the member reads
}

// Open starts recording to files, or to a topic. It fails if a setting is wrong, or the directory cannot be written.
func Open(settings Settings) (*Hooks, error) {
	settings, err := settings.checked()
	if err != nil {
		return nil, err
	}
	var to output
	if settings.Topic != "" {
		to, err = openTopic(settings)
	} else {
		to, err = openFiles(settings)
	}
	if err != nil {
		return nil, err
	}
	return &Hooks{
		recorder: newRecorder(to, settings.QueueRows, settings.Sampling), clients: map[string]string{}, queues: map[string]string{},
	}, nil
}

// Close writes what waits and ends the files. Call it when the clients are shut down.
func (h *Hooks) Close() error { return h.recorder.close() }

// Dropped returns how many rows were dropped since the start.
func (h *Hooks) Dropped() int64 { return h.recorder.droppedInAll.Load() }

// Producer returns the interceptor of a producer of the group.
//
// The interceptor surrounds all attempts of a send. It does not see the result of SendAsync, nor the ids of the
// messages of a batch before they are stored: their sends are recorded afterwards.
func (h *Hooks) Producer(group string) primitive.Interceptor {
	var hidden sync.Once
	return func(ctx context.Context, req, reply interface{}, next primitive.Invoker) error {
		message, isMessage := req.(*primitive.Message)
		if !isMessage {
			return next(ctx, req, reply)
		}
		// The client may repeat a send, and its interceptors do not see that.
		hidden.Do(func() {
			h.recorder.record(&row{Kind: "register", Group: group, Client: "producer-" + group, Attrs: attrs{"retries": "2"}})
		})
		if message.Batch {
			return h.batch(ctx, group, message, req, reply, next)
		}
		if message.GetProperty(uniqueKey) == "" {
			message.WithProperty(uniqueKey, primitive.CreateUniqID())
		}
		sent := h.message(group, message)
		sent.Kind, sent.Tags = "send", pointer(message.GetTags())
		h.recorder.record(sent)
		err := next(ctx, req, reply)
		result, hasResult := reply.(*primitive.SendResult)
		if !hasResult || result == nil {
			return err // SendAsync and SendOneWay: what follows is not known here
		}
		h.ended(ctx, group, message, result, err)
		return err
	}
}

func (h *Hooks) ended(
	ctx context.Context, group string, message *primitive.Message, result *primitive.SendResult, err error,
) {
	// A half message is stored, and delivered only if it is committed, which no interceptor shows.
	if message.GetProperty(primitive.PropertyTransactionPrepared) != "" {
		return
	}
	end := h.message(group, message)
	if sender, has := primitive.GetProducerCtx(ctx); has && sender.MQ.BrokerName != "" {
		end.Attrs, end.QueueID = attrs{"broker": sender.MQ.BrokerName}, pointer(sender.MQ.QueueId)
	}
	if err != nil || result.MessageQueue == nil {
		end.Kind, end.Status = "send_fail", refusal(err)
		h.recorder.record(end)
		return
	}
	end.Kind, end.Status = "send_ack", status(result.Status)
	end.QueueID, end.Attrs = pointer(result.MessageQueue.QueueId), attrs{"broker": result.MessageQueue.BrokerName}
	if message.GetProperty(primitive.PropertyDelayTimeLevel) == "" && message.GetProperty("TIMER_DELIVER_MS") == "" {
		end.QueueOffset = pointer(result.QueueOffset)
	}
	h.recorder.record(end)
}

// batch records the messages of a batch when the broker has given them their ids.
func (h *Hooks) batch(
	ctx context.Context, group string, message *primitive.Message, req, reply interface{}, next primitive.Invoker,
) error {
	began := nowMicros()
	err := next(ctx, req, reply)
	result, hasResult := reply.(*primitive.SendResult)
	if err != nil || !hasResult || result == nil || result.MessageQueue == nil || result.OffsetMsgID == "" {
		// They may be stored, under ids that are not known here.
		h.recorder.drop(1, began, "batch_unknown")
		return err
	}
	for place, id := range strings.Split(result.OffsetMsgID, ",") {
		sent := row{
			ts: began, Kind: "send", MsgID: id, Topic: message.Topic, Group: group, Attempt: 1,
			Attrs: attrs{"broker": result.MessageQueue.BrokerName},
		}
		h.recorder.record(&sent)
		stored := sent
		stored.ts, stored.Kind, stored.Status = 0, "send_ack", status(result.Status)
		stored.QueueID = pointer(result.MessageQueue.QueueId)
		stored.QueueOffset = pointer(result.QueueOffset + int64(place))
		h.recorder.record(&stored)
	}
	return nil
}

func (h *Hooks) message(group string, message *primitive.Message) *row {
	return &row{
		MsgID: message.GetProperty(uniqueKey), Topic: message.Topic, Group: group, Attempt: 1, Keys: message.GetKeys(),
	}
}

// Consumer returns the interceptor of a push consumer of the group.
func (h *Hooks) Consumer(group string) primitive.Interceptor {
	return func(ctx context.Context, req, reply interface{}, next primitive.Invoker) error {
		messages, areMessages := req.([]*primitive.MessageExt)
		if !areMessages {
			return next(ctx, req, reply)
		}
		queue := (*primitive.MessageQueue)(nil)
		if consuming, has := primitive.GetConsumerCtx(ctx); has {
			queue = consuming.MQ
		}
		for _, message := range messages {
			got := h.received(group, message, queue)
			got.Kind, got.Tags = "deliver", pointer(message.GetTags())
			h.recorder.record(got)
		}
		err := next(ctx, req, reply)
		holder, has := reply.(*consumer.ConsumeResultHolder)
		if !has {
			return err
		}
		kind := "consume_fail"
		if err == nil && (holder.ConsumeResult == consumer.ConsumeSuccess || holder.ConsumeResult == consumer.Commit) {
			kind = "consume_ok"
		}
		for _, message := range messages {
			end := h.received(group, message, queue)
			end.Kind = kind
			h.recorder.record(end)
		}
		return err
	}
}

func (h *Hooks) received(group string, message *primitive.MessageExt, queue *primitive.MessageQueue) *row {
	id := message.GetProperty(uniqueKey)
	if id == "" {
		id = message.OffsetMsgId
	}
	if queue == nil {
		queue = message.Queue
	}
	h.mutex.Lock()
	client := h.clients[group]
	h.mutex.Unlock()
	got := &row{
		MsgID: id, Group: group, Client: client, Keys: message.GetKeys(), CommitOffset: pointer(message.CommitLogOffset),
		QueueOffset: pointer(message.QueueOffset), BornTS: message.BornTimestamp * 1_000,
	}
	if queue != nil {
		// The queue that the client read: the message itself may have its original topic again.
		got.Topic, got.QueueID, got.Attrs = queue.Topic, pointer(queue.QueueId), attrs{"broker": queue.BrokerName}
	}
	return got
}

// Subscribed records what the group selects from a topic. Call it beside Subscribe of the consumer.
func (h *Hooks) Subscribed(group, topic string, selector consumer.MessageSelector) {
	kind, expression := string(selector.Type), selector.Expression
	if kind == "" {
		kind = "TAG"
	}
	if expression == "" {
		expression = "*"
	}
	// The client runs the listener in several goroutines.
	h.recorder.record(&row{
		Kind: "subscribe", Topic: topic, Group: group, Client: "consumer-" + group,
		Attrs: attrs{"type": kind, "expression": expression, "threads": "many"},
	})
}

// Strategy returns the strategy of a consumer, with a record of its results.
func (h *Hooks) Strategy(inner consumer.AllocateStrategy) consumer.AllocateStrategy {
	return func(group, client string, queues []*primitive.MessageQueue, clients []string) []*primitive.MessageQueue {
		owned := inner(group, client, queues, clients)
		if len(queues) > 0 && !strings.HasPrefix(queues[0].Topic, "%RETRY%") {
			h.owns(group, client, queues[0].Topic, owned)
		}
		return owned
	}
}

func (h *Hooks) owns(group, client, topic string, owned []*primitive.MessageQueue) {
	names := make([]string, 0, len(owned))
	for _, queue := range owned {
		names = append(names, queue.BrokerName+"/"+strconv.Itoa(queue.QueueId))
	}
	key, value := strings.Join([]string{group, client, topic}, "\x00"), strings.Join(names, " ")
	h.mutex.Lock()
	defer h.mutex.Unlock()
	before, known := h.queues[key]
	h.clients[group], h.queues[key] = client, value
	if !known || before != value {
		h.recorder.record(&row{
			Kind: "rebalance", Topic: topic, Group: group, Client: client,
			Attrs: attrs{"queues": strconv.Itoa(len(owned))},
		})
	}
}

func status(sent primitive.SendStatus) string {
	switch sent {
	case primitive.SendOK:
		return "SEND_OK"
	case primitive.SendFlushDiskTimeout:
		return "FLUSH_DISK_TIMEOUT"
	case primitive.SendFlushSlaveTimeout:
		return "FLUSH_SLAVE_TIMEOUT"
	case primitive.SendSlaveNotAvailable:
		return "SLAVE_NOT_AVAILABLE"
	}
	return "unknown"
}

// refusal returns the name of the refusal, or "unknown" if the message may be stored: an earlier attempt may have been.
func refusal(err error) string {
	var refused primitive.MQBrokerErr
	if errors.As(err, &refused) && refused.ResponseCode == 13 {
		return "MESSAGE_ILLEGAL"
	}
	return "unknown"
}
