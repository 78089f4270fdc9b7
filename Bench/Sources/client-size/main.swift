import Foundation
import TrunklineClient

// The smallest app that makes all of the SDK be linked: what of it is ours is what bench-client measures. Its sockets are the system's.

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
