package config

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"ingot/model"
)

// variablePrefix begins the name of every environment variable that is a setting.
const variablePrefix = "INGOT_"

type setting struct {
	path     string // git.auth.usernameFile
	variable string // INGOT_GIT_AUTH_USERNAME_FILE
	value    reflect.Value
}

// settings returns every key of o, in the order of the struct.
func settings(o *Options) []setting {
	return appendSettings(nil, "", reflect.ValueOf(o).Elem())
}

func appendSettings(all []setting, prefix string, v reflect.Value) []setting {
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		path := prefix + name
		if field := v.Field(i); field.Kind() == reflect.Struct {
			all = appendSettings(all, path+".", field)
		} else {
			all = append(all, setting{path: path, variable: variableOf(path), value: field})
		}
	}
	return all
}

func variableOf(path string) string {
	var b strings.Builder
	b.WriteString(variablePrefix)
	before := '.'
	for _, r := range path {
		switch {
		case r == '.':
			b.WriteByte('_')
		case unicode.IsUpper(r) && !unicode.IsUpper(before): // appID is APP_ID
			b.WriteByte('_')
			b.WriteRune(r)
		default:
			b.WriteRune(unicode.ToUpper(r))
		}
		before = r
	}
	return b.String()
}

// overlay sets in o what the variables of env say. It returns which keys, by path, were set
// by which variable, and what is wrong.
func overlay(o *Options, env []string) (map[string]string, []model.Problem) {
	byVariable := make(map[string]setting)
	var variables []string
	for _, s := range settings(o) {
		byVariable[s.variable] = s
		variables = append(variables, s.variable)
	}
	set := make(map[string]string)
	var problems []model.Problem
	for _, entry := range env {
		variable, text, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(variable, variablePrefix) {
			continue
		}
		s, known := byVariable[variable]
		if !known {
			message := cmp.Or(removedVariable(variable), "there is no such setting"+didYouMean(variable, variables)+"; unset it or correct its name")
			problems = append(problems, model.Problem{Severity: model.SeverityError, File: variable, Message: message})
			continue
		}
		set[s.path] = variable
		if err := assign(s.value, text); err != nil {
			problems = append(problems, model.Problem{
				Severity: model.SeverityError, File: variable, Field: s.path, Message: err.Error(),
			})
		}
	}
	return set, problems
}

func assign(v reflect.Value, text string) error {
	if u, ok := reflect.TypeAssert[encoding.TextUnmarshaler](v.Addr()); ok {
		return u.UnmarshalText([]byte(text))
	}
	var err error
	switch p := v.Addr().Interface().(type) {
	case *string:
		*p = text
	case *bool:
		if *p, err = strconv.ParseBool(text); err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
	case *int:
		if *p, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("%q is no whole number", text)
		}
	case *float64:
		if *p, err = strconv.ParseFloat(text, 64); err != nil {
			return fmt.Errorf("%q is no number", text)
		}
	case *time.Duration:
		if *p, err = time.ParseDuration(text); err != nil {
			return fmt.Errorf("%q is no duration; write a number and a unit, such as 60s, 5m or 1h", text)
		}
	default:
		return errors.New("lists and mappings cannot be set in the environment; write them in the configuration file")
	}
	return nil
}

// didYouMean returns a question with the nearest of names, or nothing when none
// is near.
func didYouMean(name string, names []string) string {
	if n := model.Nearest(name, names); n != "" {
		return fmt.Sprintf(", did you mean %s?", n)
	}
	return ""
}
