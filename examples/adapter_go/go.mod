module example/adapter

go 1.22
