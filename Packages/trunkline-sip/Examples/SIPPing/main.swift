import TrunklineBytes

// sip-ping ADDRESS:PORT sends OPTIONS over UDP and prints the code of the final response.
guard CommandLine.arguments.count == 2, let server = SocketAddress(CommandLine.arguments[1]) else {
  fatalError("usage: sip-ping ADDRESS:PORT")
}
print(try Ping(server).run())
