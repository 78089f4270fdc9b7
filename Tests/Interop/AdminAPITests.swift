import Foundation
import Testing

extension Interop {
  /// docs/reference/admin-api.yaml against a live gateway.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct AdminAPITests {
    @Test func `each operation of docs/reference/admin-api.yaml answers as documented`() async throws {
      let service = try await PushServiceUnderTest(.h2)
      let gateway = try await service.gateway(["events: {}"])
      let registered = try await service.killedApp(gateway, ["--calls", "1"])
      registered.signal(SIGKILL)
      _ = try await registered.finish(within: 10)
      // the second call is one that the API makes
      let phone = try await Peers.phone(gateway, ["--answer-after", "0.1", "--calls", "2"])
      let caller = try Peers.caller(gateway, "call_until_bye")
      let document = Surroundings.sources + "/../../docs/reference/admin-api.yaml"
      let checked = try Peers.python(
        "admin_api", "admin_api.py", ["http://127.0.0.1:\(gateway.admin)", document, "alice", "cell"], gateway)
      #expect(try await checked.finish(within: 60) == 0, "\(checked.text)")
      #expect(try await caller.finish(within: 20) == 0, "\(caller.text.suffix(6_000))")
      #expect(try await phone.finish(within: 20) == 0, "\(phone.text)")
      try await gateway.finish()
      try await service.stop()
    }
  }
}
