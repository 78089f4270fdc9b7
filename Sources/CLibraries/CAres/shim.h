#pragma once
#include <ares.h>
#include <arpa/nameser.h>
#include <netinet/in.h>
#include <sys/time.h>
