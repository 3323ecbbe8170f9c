package features

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/cucumber/godog"
)

// oneOf are the functions of a step, by the words in which its texts differ.
type oneOf map[string]any

// placeholders stand for the names and numbers in expressions. A list of names has commas.
var placeholders = strings.NewReplacer(
	"DEVICE", `(?:BMC |device )?"([^"]*)"`,
	"NAME", `"([^"]*)"`,
	"NUMBER", `(\d+)`,
	"TEXT", `"(.*)"`,
	"THING", `(iPXE script|Ignition|image|boot state|wipe result)`,
	"PAGE", `(the fleet|the problems|server "[^"]*"|claim "[^"]*")`,
)

// register defines a step. In the expression of a step with choices, %s is the place of the words.
func register(sc *godog.ScenarioContext, expression string, do any) {
	all, several := do.(oneOf)
	switch t := reflect.TypeOf(do); {
	case several:
	case t.In(t.NumIn()-1) == reflect.TypeFor[*godog.Table]():
		sc.Step("^"+placeholders.Replace(expression)+"$", do)
		return
	default:
		expression, all = expression+"%s", oneOf{"": do}
	}
	of := func(words string) string { return placeholders.Replace(fmt.Sprintf(expression, "(?:"+words+")")) }
	each := make(map[*regexp.Regexp]any, len(all))
	for words, f := range all {
		each[regexp.MustCompile("^"+of(words)+"$")] = f
	}
	any := strings.NewReplacer("(?:", "(?:", "(", "(?:").Replace(of(strings.Join(sortedKeys(all), "|")))
	sc.Step("^("+any+")$", func(ctx context.Context, text string) error {
		for e, f := range each {
			if found := e.FindStringSubmatch(text); found != nil {
				return call(ctx, f, found[1:])
			}
		}
		return fmt.Errorf("no step is %q", text)
	})
}

// call calls the function of a step with the texts, numbers, machines and devices that a scenario names.
func call(ctx context.Context, do any, arguments []string) error {
	f := reflect.ValueOf(do)
	in := []reflect.Value{reflect.ValueOf(ctx)}
	for i, text := range arguments {
		var value any = text
		var err error
		switch reflect.Zero(f.Type().In(i + 1)).Interface().(type) {
		case int:
			value, err = strconv.Atoi(text)
		case *machine:
			value, err = siteOf(ctx).machine(text)
		case *device:
			value, err = siteOf(ctx).device(text)
		}
		if err != nil {
			return err
		}
		in = append(in, reflect.ValueOf(value))
	}
	err, _ := reflect.TypeAssert[error](f.Call(in)[0])
	return err
}
