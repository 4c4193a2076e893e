package usage

func workerChild() {}
