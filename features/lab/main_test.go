package lab

import (
	"os"
	"testing"

	"ingot/features/internal/rig"
)

func TestMain(m *testing.M) { os.Exit(rig.Main(m)) }
