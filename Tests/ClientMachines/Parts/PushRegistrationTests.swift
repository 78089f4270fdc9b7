import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import TrunklineClientMachines

@Suite struct PushRegistrationTests {
  private func token(_ text: String) -> DevicePut.Push { DevicePut.Push(kind: .apnsVoIP, token: text) }
  private func kinds(_ messages: [ClientMessage]) -> [String] {
    messages.map {
      switch $0 {
      case .devicePut(let put): "put \(put.push?.token ?? "-")"
      case .deviceDel: "del"
      default: "other"
      }
    }
  }

  @Test func `nothing is registered without a token and preferences, and the same is registered at each login`() {
    var registration = PushRegistration()
    holds(registration.messages().isEmpty && !registration.isQuestion(id(1)))
    registration.set(nil)
    holds(registration.messages().isEmpty)
    registration.set(token("a"))
    for _ in 0..<2 {
      holds(kinds(registration.messages()) == ["put a"])
      registration.asked(id(1))
      holds(!registration.answered())
    }
    var other = PushRegistration()
    other.set(DevicePut.Preferences())
    holds(kinds(other.messages()) == ["put -"])
  }

  @Test func `one request is open at a time, then the latest is sent, once`() {
    var registration = PushRegistration()
    registration.set(token("a"))
    _ = registration.messages()
    registration.asked(id(1))
    for text in ["b", "c"] {
      registration.set(token(text))
      holds(registration.messages().isEmpty)
    }
    #expect(registration.isQuestion(id(1)) && !registration.isQuestion(id(2)))
    holds(registration.answered() && kinds(registration.messages()) == ["put c"])
    registration.asked(id(2))
    holds(!registration.answered())
  }

  @Test func `a request that could not be sent is not open`() {
    var registration = PushRegistration()
    registration.set(token("a"))
    _ = registration.messages()
    registration.asked(nil)
    holds(kinds(registration.messages()) == ["put a"])
  }

  @Test func `a dropped token is removed once, also one that was dropped twice or is replaced before the login`() {
    var registration = PushRegistration()
    registration.set(token("a"))
    for _ in 0..<2 { registration.set(nil) }
    holds(kinds(registration.messages()) == ["del"] && registration.messages().isEmpty)
    registration.set(token("b"))
    registration.set(nil)
    registration.set(DevicePut.Preferences())
    holds(kinds(registration.messages()) == ["del", "put -"])
    registration.set(token("b"))
    registration.set(nil)
    registration.set(token("c"))
    holds(kinds(registration.messages()) == ["put c"], "a newer token replaces the old one")
  }

  @Test func `a request of an ended session is not awaited, and after a logout nothing is registered`() {
    var registration = PushRegistration()
    registration.set(token("a"))
    _ = registration.messages()
    registration.asked(id(1))
    registration.sessionEnded()
    #expect(!registration.isQuestion(id(1)))
    holds(kinds(registration.messages()) == ["put a"])
    registration.loggedOut()
    holds(registration.messages().isEmpty)
  }
}
