package sim

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"ingot/model"
)

// maxSubscriptions is how many event subscriptions a BMC keeps.
const maxSubscriptions = 20

// subscriptions are the receivers of events.
type subscriptions struct {
	mu     sync.Mutex
	list   []subscription
	lastID int
	events int
}

type subscription struct {
	id          string
	destination string
	context     string
}

func (s *subscriptions) all() []subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

func (s *subscriptions) ids() []string {
	var ids []string
	for _, e := range s.all() {
		ids = append(ids, e.id)
	}
	return ids
}

func (s *subscriptions) get(id string) subscription {
	for _, e := range s.all() {
		if e.id == id {
			return e
		}
	}
	return subscription{}
}

// add makes a subscription and returns its ID, "" when there are too many.
func (s *subscriptions) add(e subscription) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) >= maxSubscriptions {
		return ""
	}
	s.lastID++
	e.id = strconv.Itoa(s.lastID)
	s.list = append(s.list, e)
	return e.id
}

func (s *subscriptions) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(e subscription) bool { return e.id == id })
}

func (s *subscriptions) next() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events++
	return strconv.Itoa(s.events)
}

func eventNode() *node {
	subscribers := collection("EventDestination", "Subscriptions", func(v view) []string { return v.bmc.events.ids() }, &node{
		schema: "EventDestination.v1_13_2", get: getSubscription,
		remove: func(v view) reply {
			v.bmc.events.remove(v.id())
			return reply{status: http.StatusNoContent}
		},
	})
	subscribers.post = subscribe
	return &node{
		schema: "EventService.v1_10_0",
		get: func(v view) object {
			return object{
				"Id": "EventService", "Name": "Event Service", "ServiceEnabled": true, "Status": status(),
				"DeliveryRetryAttempts": 0, "DeliveryRetryIntervalSeconds": 60,
				"EventFormatTypes": []string{"Event"}, "RegistryPrefixes": []string{registryPrefix, "ResourceEvent"},
				"Subscriptions": v.link("Subscriptions"),
				"Actions":       object{"#EventService.SubmitTestEvent": object{"target": v.path + "/Actions/EventService.SubmitTestEvent"}},
			}
		},
		child: map[string]*node{
			"Subscriptions": subscribers,
			"Actions":       {child: map[string]*node{"EventService.SubmitTestEvent": {post: submitTestEvent, bodyless: true}}},
		},
	}
}

func getSubscription(v view) object {
	e := v.bmc.events.get(v.id())
	return object{
		"Id": e.id, "Name": "Subscription " + e.id, "Destination": e.destination, "Context": e.context, "Protocol": "Redfish",
		"EventFormatType": "Event", "SubscriptionType": "RedfishEvent", "DeliveryRetryPolicy": "TerminateAfterRetries", "Status": status(),
	}
}

func subscribe(v view, sent object) reply {
	destination, _ := sent["Destination"].(string)
	u, err := url.Parse(destination)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return failure(http.StatusBadRequest, newMessage(msgPropertyValue, destination, "Destination").about("#/Destination"))
	}
	if protocol, given := sent["Protocol"]; given && protocol != "Redfish" {
		return failure(http.StatusBadRequest, newMessage(msgPropertyValue, "other than Redfish", "Protocol").about("#/Protocol"))
	}
	if format, given := sent["EventFormatType"]; given && format != "Event" {
		return failure(http.StatusBadRequest, newMessage(msgPropertyValue, "other than Event", "EventFormatType").about("#/EventFormatType"))
	}
	words, _ := sent["Context"].(string)
	id := v.bmc.events.add(subscription{destination: destination, context: words})
	if id == "" {
		return failure(http.StatusBadRequest, newMessage(msgLimit))
	}
	made, _ := service{v.bmc}.resolve(v.path + "/" + id)
	return reply{status: http.StatusCreated, body: made.render(), location: made.path}
}

func submitTestEvent(v view, _ object) reply {
	v.bmc.publish("ResourceEvent.1.3.TestMessage", "A test event.", root+"/EventService")
	return reply{status: http.StatusNoContent}
}

// announce tells subscribers that a machine's power changed.
func (b *BMC) announce(s *mainboard, p model.Power) {
	b.publish("ResourceEvent.1.3.ResourceChanged", "The power state of "+string(s.name)+" is "+string(p)+".", s.URI())
}

// publish sends an event to all subscribers, once each.
func (b *BMC) publish(messageID, text, origin string) {
	subscribers := b.events.all()
	if len(subscribers) == 0 {
		return
	}
	id := b.events.next()
	event := object{
		"EventId": id, "EventType": "Alert", "EventTimestamp": redfishTime(time.Now()), "MessageId": messageID, "Message": text,
		"MessageArgs": []string{}, "Severity": "OK", "MessageSeverity": "OK", "OriginOfCondition": link(origin), "MemberId": "0",
	}
	for _, e := range subscribers {
		body := mustJSON(object{
			"@odata.type": "#Event.v1_7_0.Event", "Id": id, "Name": "Event", "Context": e.context, "Events": []object{event},
		})
		b.rack.start(func(ctx context.Context) { b.deliver(ctx, e.destination, body) })
	}
}

func (b *BMC) deliver(ctx context.Context, destination string, body []byte) {
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, destination, bytes.NewReader(body))
	if err != nil {
		return // it was checked when it was subscribed
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := b.rack.hosts.Do(req)
	if err != nil {
		b.rack.opts.Log.Debug("event is not delivered", "bmc", string(b.name), "err", err)
		return
	}
	drain(resp.Body)
}
