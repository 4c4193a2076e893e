//go:build soak

package replicas

import "testing"

func TestSoakTwoProcessesAdmitExactlyWhatThereIsRoomFor(t *testing.T) { exactly(t, 1000) }
