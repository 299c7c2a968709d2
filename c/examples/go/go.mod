module tocsin-example

go 1.19
