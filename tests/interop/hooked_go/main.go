// A Go application with audit hooks: sends messages and receives them. The arguments are the name server, the topic, the
// group ("-" to receive nothing), how many messages to send, and the number of milliseconds between them. The settings of
// the hooks are in the environment.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"

	"mqproof/audithooks"
)

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func main() {
	rlog.SetLogLevel("error")
	names := must(primitive.NewNamesrvAddr(os.Args[1]))
	topic, group := os.Args[2], os.Args[3]
	count, between := must(strconv.Atoi(os.Args[4])), must(strconv.Atoi(os.Args[5]))
	hooks := must(audithooks.Open(must(audithooks.FromEnvironment())))

	sender := must(rocketmq.NewProducer(producer.WithNameServer(names), producer.WithGroupName("go-sender"),
		producer.WithInstanceName("sender"), producer.WithRetry(2), producer.WithInterceptor(hooks.Producer("go-sender"))))
	must(0, sender.Start())
	if group == "-" {
		for number := range count {
			must(sender.SendSync(context.Background(), primitive.NewMessage(topic, []byte("lost-"+strconv.Itoa(number)))))
		}
		must(0, sender.Shutdown())
		must(0, hooks.Close())
		return
	}
	must(sender.SendSync(context.Background(), primitive.NewMessage(topic, []byte("first"))))

	receiver := must(rocketmq.NewPushConsumer(consumer.WithNameServer(names), consumer.WithGroupName(group),
		consumer.WithInstance("receiver"), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithInterceptor(hooks.Consumer(group)),
		consumer.WithStrategy(hooks.Strategy(consumer.AllocateByAveragely))))
	var mutex sync.Mutex
	got, failed := map[string]bool{}, map[string]bool{}
	listen := func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		mutex.Lock()
		defer mutex.Unlock()
		for _, message := range messages {
			body := string(message.Body)
			if body == "fails" && !failed[body] {
				failed[body] = true
				return consumer.ConsumeRetryLater, nil
			}
			got[body] = true
		}
		return consumer.ConsumeSuccess, nil
	}
	hooks.Subscribed(group, topic, consumer.MessageSelector{})
	must(0, receiver.Subscribe(topic, consumer.MessageSelector{}, listen))
	must(0, receiver.Start())

	want := []string{"first"}
	send := func(messages ...*primitive.Message) {
		for range 40 { // the broker may be restarting
			if result, err := sender.SendSync(context.Background(), messages...); err == nil && result.Status == primitive.SendOK {
				for _, message := range messages {
					want = append(want, string(message.Body))
				}
				return
			}
			time.Sleep(500 * time.Millisecond)
		}
	}
	for number := range count {
		send(primitive.NewMessage(topic, []byte(strconv.Itoa(number))).WithTag("a"))
		time.Sleep(time.Duration(between) * time.Millisecond)
	}
	send(primitive.NewMessage(topic, []byte("b1")), primitive.NewMessage(topic, []byte("b2")))
	send(primitive.NewMessage(topic, []byte("later")).WithDelayTimeLevel(1))
	send(primitive.NewMessage(topic, []byte("fails")))
	missing := func() int {
		mutex.Lock()
		defer mutex.Unlock()
		number := 0
		for _, body := range want {
			if !got[body] {
				number++
			}
		}
		return number
	}
	for wait := 0; missing() > 0 && wait < 1200; wait++ {
		time.Sleep(100 * time.Millisecond)
	}
	must(0, receiver.Shutdown())
	must(0, sender.Shutdown())
	must(0, hooks.Close())
	fmt.Println("sent", len(want), "missing", missing())
}
