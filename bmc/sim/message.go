package sim

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// registryName is the message registry that errors refer to (DSP2065).
const (
	registryPrefix = "Base"
	registryName   = "Base.1.8"
	registryFile   = "Base.1.8.0"
)

// messageKey names a message of the registry.
type messageKey string

// The messages that the rack uses.
const (
	msgSuccess          messageKey = "Success"
	msgCreated          messageKey = "Created"
	msgGeneralError     messageKey = "GeneralError"
	msgMalformedJSON    messageKey = "MalformedJSON"
	msgUnrecognizedBody messageKey = "UnrecognizedRequestBody"
	msgNotFound         messageKey = "ResourceMissingAtURI"
	msgMethod           messageKey = "OperationNotAllowed"
	msgUnauthorized     messageKey = "NoValidSession"
	msgSessionLimit     messageKey = "SessionLimitExceeded"
	msgInternalError    messageKey = "InternalError"
	msgUnavailable      messageKey = "ServiceTemporarilyUnavailable"
	msgBusy             messageKey = "ResourceInUse"
	msgState            messageKey = "ActionNotSupportedInState"
	msgPropertyUnknown  messageKey = "PropertyUnknown"
	msgPropertyReadOnly messageKey = "PropertyNotWritable"
	msgPropertyType     messageKey = "PropertyValueTypeError"
	msgPropertyValue    messageKey = "PropertyValueNotInList"
	msgPropertyMissing  messageKey = "PropertyMissing"
	msgPropertyConflict messageKey = "PropertyValueConflict"
	msgParameterMissing messageKey = "ActionParameterMissing"
	msgParameterValue   messageKey = "ActionParameterValueNotInList"
	msgParameterUnknown messageKey = "ActionParameterUnknown"
	msgPrecondition     messageKey = "PreconditionFailed"
	msgNeedsCondition   messageKey = "PreconditionRequired"
	msgFutureState      messageKey = "OperationSupportedInFutureStateURI"
	msgQueryUnsupported messageKey = "QueryNotSupported"
	msgQueryValue       messageKey = "QueryParameterValueError"
	msgQueryRange       messageKey = "QueryParameterOutOfRange"
	msgExists           messageKey = "ResourceAlreadyExists"
	msgLimit            messageKey = "CreateLimitReachedForResource"
	msgHeader           messageKey = "HeaderInvalid"
	msgPrivilege        messageKey = "InsufficientPrivilege"
)

// messageText is a message's text, with %1 … for its arguments, and its gravity.
type messageText struct {
	text       string
	severity   string // OK, Warning or Critical
	resolution string
}

// messages are the texts, in our own words.
var messages = map[messageKey]messageText{
	msgSuccess:          {"The request was carried out.", "OK", "None."},
	msgCreated:          {"The resource was created.", "OK", "None."},
	msgGeneralError:     {"The request cannot be carried out; see the extended information.", "Critical", "See the extended information."},
	msgMalformedJSON:    {"The body of the request is no JSON.", "Critical", "Send a JSON object."},
	msgUnrecognizedBody: {"The body of the request is not a JSON object with what is needed.", "Warning", "Send a JSON object with at least one property."},
	msgNotFound:         {"There is no resource at %1.", "Critical", "Use a link that the service gives."},
	msgMethod:           {"The method is not allowed for this resource.", "Critical", "Use a method that the Allow header names."},
	msgUnauthorized:     {"The request carries no valid session or credentials.", "Critical", "Open a session or send credentials."},
	msgSessionLimit:     {"All sessions are taken.", "Critical", "Close a session that is not needed, or wait."},
	msgInternalError:    {"The service met an error of its own.", "Critical", "Send the request again later."},
	msgUnavailable:      {"The service is temporarily unavailable. Retry in %1 seconds.", "Critical", "Send the request again after that time."},
	msgBusy:             {"The resource is in transition.", "Warning", "Send the request again later."},
	msgState:            {"The action %1 cannot be carried out in this power state.", "Critical", "Look at the power state first."},
	msgPropertyUnknown:  {"There is no property %1.", "Warning", "Leave the property out."},
	msgPropertyReadOnly: {"The property %1 cannot be written.", "Warning", "Leave the property out."},
	msgPropertyType:     {"The value %1 of the property %2 has another type than the property.", "Warning", "Send a value of the property's type."},
	msgPropertyValue:    {"The value %1 of the property %2 is none that is allowed.", "Warning", "Send one of the allowable values."},
	msgPropertyMissing:  {"The property %1 is needed.", "Warning", "Send the property."},
	msgPropertyConflict: {"The properties %1 and %2 do not go together as they were sent.", "Warning", "Send both, with values that go together."},
	msgParameterMissing: {"The action %1 needs the parameter %2.", "Critical", "Send the parameter."},
	msgParameterValue:   {"The value %1 of the parameter %2 of the action %3 is none that is allowed.", "Warning", "Send one of the allowable values."},
	msgParameterUnknown: {"The action %1 has no parameter %2.", "Warning", "Leave the parameter out."},
	msgPrecondition:     {"The resource is not as the request expects it.", "Critical", "Read the resource again and repeat the request with its ETag."},
	msgNeedsCondition:   {"The request needs an If-Match header.", "Critical", "Send the ETag of the resource as If-Match."},
	msgFutureState:      {"This can be changed for the next reset only, at %1.", "Critical", "Send the request to the settings resource."},
	msgQueryUnsupported: {"The service does not know this query parameter.", "Warning", "Leave the query parameter out."},
	msgQueryValue:       {"The value %1 of the query parameter %2 cannot be used.", "Warning", "Correct the value."},
	msgQueryRange:       {"The value %1 of the query parameter %2 is outside %3.", "Warning", "Send a value in the range."},
	msgExists:           {"There is a resource of type %1 with %2 = %3 already.", "Critical", "Choose another value."},
	msgLimit:            {"No more resources of this kind can be made.", "Critical", "Delete one that is not needed."},
	msgPrivilege:        {"The account may not do this.", "Critical", "Use an account with a role that may."},
	msgHeader:           {"The header %1 asks for what the service does not have.", "Critical", "Correct the header."},
}

type message struct {
	key  messageKey
	args []string
	// property is the JSON pointer of what it is about, "" for all.
	property string
}

func newMessage(key messageKey, args ...string) *message { return &message{key: key, args: args} }

func (m *message) about(pointer string) *message {
	m.property = pointer
	return m
}

// object is the message as a Message object (DSP0268).
func (m *message) object() object {
	text := messages[m.key]
	filled := text.text
	for i, a := range m.args {
		filled = strings.ReplaceAll(filled, "%"+strconv.Itoa(i+1), a)
	}
	o := object{
		"@odata.type":     "#Message.v1_1_1.Message",
		"MessageId":       registryName + "." + string(m.key),
		"Message":         filled,
		"MessageArgs":     nonNil(m.args),
		"Severity":        text.severity,
		"MessageSeverity": text.severity,
		"Resolution":      text.resolution,
	}
	if m.property != "" {
		o["RelatedProperties"] = []string{m.property}
	}
	return o
}

func nonNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// reply is an answer to a request.
type reply struct {
	status   int
	body     object // nil = none
	raw      []byte // the body, if it is encoded already
	location string
	token    string // of a new session
	header   http.Header
	// lost, if set, holds the connection for a while, which is then closed unanswered.
	lost func(ctx context.Context)
}

// failure is a reply whose body is an error (DSP0266 §8.6).
func failure(status int, about ...*message) reply {
	info := make([]object, len(about))
	for i, m := range about {
		info[i] = m.object()
	}
	first := about[0]
	code, text := first.key, fmt.Sprint(info[0]["Message"])
	if len(about) > 1 {
		code, text = msgGeneralError, messages[msgGeneralError].text
	}
	return reply{status: status, body: object{"error": object{
		"code": registryName + "." + string(code), "message": text, "@Message.ExtendedInfo": info,
	}}}
}

// notFound is the answer where nothing is.
func notFound(path string) reply {
	return failure(http.StatusNotFound, newMessage(msgNotFound, path))
}
