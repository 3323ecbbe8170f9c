package plan

import (
	"reflect"
	"testing"

	"ingot/model"
)

// TestWhatIsSaidOtherwiseIsNotTheSame: whatever it is that is said of an object, the value of the
// plan before does not stand for it.
func TestWhatIsSaidOtherwiseIsNotTheSame(t *testing.T) {
	server, bmc := Server{Name: "a", Record: new(model.ServerRecord)}, BMC{Name: "a", Record: new(model.BMCRecord)}
	if again, bmcAgain := server, bmc; !server.is(&again) || !bmc.is(&bmcAgain) {
		t.Fatal("the same is said of an object and it is not the same")
	}
	for i := range reflect.TypeFor[Server]().NumField() {
		other := server
		changeField(&other, i)
		if server.is(&other) || other.is(&server) {
			t.Errorf("servers with another %s are the same", reflect.TypeFor[Server]().Field(i).Name)
		}
	}
	for i := range reflect.TypeFor[BMC]().NumField() {
		other := bmc
		changeField(&other, i)
		if bmc.is(&other) || other.is(&bmc) {
			t.Errorf("BMCs with another %s are the same", reflect.TypeFor[BMC]().Field(i).Name)
		}
	}
}

// changeField has a field of what v points to say something else.
func changeField(v any, i int) {
	f := reflect.ValueOf(v).Elem().Field(i)
	switch f.Kind() {
	case reflect.Pointer:
		f.Set(reflect.New(f.Type().Elem()))
	case reflect.Slice:
		f.Set(reflect.MakeSlice(f.Type(), 1, 1))
	case reflect.String:
		f.SetString("b")
	case reflect.Bool:
		f.SetBool(true)
	case reflect.Struct:
		f.Field(0).SetString("b")
	default:
		panic("a field of kind " + f.Kind().String())
	}
}
