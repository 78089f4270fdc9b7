import Foundation
import TrunklineClient

// The smallest app that links all of the SDK; bench-client measures the SDK's part of its size. Its sockets are stubs.

struct NoSockets: SocketConnector {
  private struct Closed: Socket {
    func send(_ text: [UInt8]) {}
    func close(_ code: UInt16) {}
  }
  func open(_ url: String, events: @escaping @Sendable (SocketEvent) -> Void) -> any Socket { Closed() }
  func post(_ url: String, bearer: String, body: [UInt8]) {}
}

let phone = Phone("wss://phone.example.com/v1/connect", system: .none, audio: NoAudio(), sockets: NoSockets()) { "" }
let call = phone.call("+15551230001")
print(phone.state, call.state)
