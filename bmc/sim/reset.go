package sim

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"ingot/bmc/sim/internal/delay"
)

func (v view) resetAction() object {
	k := v.bmc.rack.kind
	action := object{"target": v.path + "/Actions/ComputerSystem.Reset"}
	if k.resetForm != resetsInAction {
		action["@Redfish.ActionInfo"] = v.path + "/ResetActionInfo"
	}
	if k.resetForm != resetsInInfo {
		action["ResetType@Redfish.AllowableValues"] = k.resetTypes
	}
	return action
}

func getResetInfo(v view) object {
	return object{"Id": "ResetActionInfo", "Name": "Parameters of ComputerSystem.Reset", "Parameters": []object{{
		"Name": "ResetType", "Required": true, "DataType": "String", "AllowableValues": v.bmc.rack.kind.resetTypes,
	}}}
}

func resetSystem(v view, sent object) reply {
	s := v.server()
	const action = "ComputerSystem.Reset"
	value, problem := parameter(action, sent, "ResetType", v.bmc.rack.kind.resetTypes)
	if problem != nil {
		return failure(http.StatusBadRequest, problem)
	}
	if args, late := s.faults.use(FaultResetLate); late {
		s.rack().start(func(ctx context.Context) {
			if delay.Wait(ctx, orDefault(args.Delay, 2*time.Second)) {
				s.reset(value, CauseRedfish)
			}
		})
		return reply{status: http.StatusNoContent}
	}
	switch s.reset(value, CauseRedfish) {
	case refusedBusy:
		return failure(http.StatusConflict, newMessage(msgBusy))
	case refusedState:
		return failure(http.StatusConflict, newMessage(msgState, action))
	}
	return s.loseAnswer(reply{status: http.StatusNoContent})
}

// loseAnswer makes of the answer to a reset that was carried out what the faults make
// of it.
func (s resource) loseAnswer(rep reply) reply {
	if _, fails := s.faults.use(FaultResetFails); fails {
		return failure(http.StatusInternalServerError, newMessage(msgInternalError))
	}
	if _, dropped := s.faults.use(FaultResetDropped); dropped {
		rep.lost = func(context.Context) {}
	}
	if cleared := s.faults.until(FaultResetHangs); cleared != nil {
		s.faults.use(FaultResetHangs)
		rep.lost = func(ctx context.Context) {
			select {
			case <-ctx.Done():
			case <-cleared:
			}
		}
	}
	return rep
}

func parameter(action string, sent object, name string, allowed []string) (string, *message) {
	for _, key := range sortedKeys(sent) {
		if key != name {
			return "", newMessage(msgParameterUnknown, action, key)
		}
	}
	value, given := sent[name]
	if !given {
		return "", newMessage(msgParameterMissing, action, name)
	}
	s, _ := value.(string)
	if !slices.Contains(allowed, s) {
		return "", newMessage(msgParameterValue, fmt.Sprint(value), name, action)
	}
	return s, nil
}
