import Foundation
import Testing

extension Interop {
  /// A foreign user directory, over TLS, that misbehaves in every way. sipp calls, aiortc answers.
  @Suite(.enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct HostileDirectoryTests {
    /// The modes of peers/hostile_directory.py, chosen by the last two digits of the number.
    private enum Mode: Int, CaseIterable {
      case right, rubbish, large, page, redirect, late, cut, drip, failed, array, depth, other, spaces, headers
      var number: String { "+155570000" + (rawValue < 10 ? "0" : "") + "\(rawValue)" }
      /// The answer comes in time and with a status below 500: the gateway does not back off from the server.
      var isAnAnswer: Bool { ![.late, .cut, .drip, .failed, .headers].contains(self) }
    }

    private struct Site {
      var gateway: GatewayUnderTest
      var directory: Spawned
      var certificate: String
    }

    /// Alice is in the configuration; the directory is queried about all other numbers.
    private func site() async throws -> Site {
      let (port, elsewhere) = (try FreePorts.tcp(), try FreePorts.tcp())
      let certificate = try await OpenSSL.certificate("localhost")
      let gateway = try await GatewayUnderTest([
        "users: [ { id: alice, numbers: [ \"+15551230001\" ] }, { id: any, webhook: { url: \"https://localhost:\(port)/directory\", key_file: jwt.key, cache: 1 } } ]",
        "routes: { inbound: [ { trunk: carrier, to: users } ], webhook_ca: \(certificate)/sip.pem }",
      ])
      let directory = try Peers.python(
        "directory", "hostile_directory.py",
        [
          "--port", "\(port)", "--private", "\(elsewhere)", "--certificate", certificate + "/sip.pem", "--key",
          certificate + "/sip.key",
        ], gateway)
      _ = try await directory.event("listening")
      return Site(gateway: gateway, directory: directory, certificate: certificate)
    }

    private func finish(_ site: Site) async throws {
      #expect(!site.directory.events.contains { $0["event"] as? String == "private" }, "a redirect was followed")
      site.directory.signal(SIGKILL)
      _ = try await site.directory.finish(within: 5)
      try await site.gateway.finish()
      try FileManager.default.removeItem(atPath: site.certificate)
    }

    private func sockets(_ gateway: GatewayUnderTest) -> Int {
      let folder = "/proc/\(gateway.process.pid)/fd"
      let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
      return names.count {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: folder + "/" + $0))?.hasPrefix("socket") == true
      }
    }

    @Test func `whatever the directory answers, the call gets 503, other calls continue, and nothing is left behind`()
      async throws
    {
      let site = try await site()
      let gateway = site.gateway
      let before = sockets(gateway)
      let alice = try await Peers.phone(gateway, ["--answer-after", "0"])
      // a mode that answers follows each that fails: the gateway does not back off from the server, so each mode is queried
      let bad = Mode.allCases.filter { ![.right, .late, .spaces].contains($0) }
      let answers = bad.filter(\.isAnAnswer)
      let failures = bad.filter { !$0.isAnAnswer }
      let order =
        zip(answers, failures).flatMap { [$0, $1] } + answers.dropFirst(failures.count) + failures.dropFirst(answers.count)
      for mode in order {
        let caller = try Peers.caller(gateway, "refused_503", to: mode.number)
        #expect(try await caller.finish(within: 15) == 0, "\(mode): \(caller.text.suffix(1_500))")
        #expect(site.directory.events.contains { $0["number"] as? String == mode.number }, "\(mode): it was asked")
      }
      // while this query waits, another call begins and ends
      let late = try Peers.caller(gateway, "refused_503", to: Mode.late.number)
      _ = try await site.directory.event("asked") { $0["mode"] as? String == "late" }
      let good = try Peers.caller(gateway, "call", ["-d", "300"])
      #expect(try await good.finish(within: 15) == 0, "\(good.text.suffix(1_500))")
      #expect(try await late.finish(within: 15) == 0, "the limit is the gateway's, not the 30 s: \(late.text.suffix(1_500))")
      #expect(!site.directory.events.contains { $0["event"] as? String == "done" && $0["mode"] as? String == "late" })
      // then the directory answers rightly: the user is found, and has no device
      let right = try Peers.caller(gateway, "refused_480", to: Mode.right.number)
      #expect(try await right.finish(within: 15) == 0, "\(right.text.suffix(1_500))")
      let users = try await gateway.records(2).compactMap { $0["user"] as? String }
      #expect(users.sorted() == ["alice", "carol"], "one waits for its last statistics, the other has no media")
      #expect(try gateway.sum("trunkline_webhooks_total", "outcome=\"answered\"") >= 1)
      alice.type("quit")
      _ = try await alice.finish(within: 5)
      // up to four connections to a server are kept for its next queries
      #expect(await eventually(within: 10) { sockets(gateway) <= before + 4 }, "\(sockets(gateway)) sockets, \(before) before")
      try await finish(site)
    }

    @Test func `a hundred calls wait for one that never answers: each is refused, and the server is left alone for a while`()
      async throws
    {
      let site = try await site()
      let gateway = site.gateway
      let alice = try await Peers.phone(gateway, ["--answer-after", "0"])
      let late = try Peers.caller(gateway, "refused_503", to: Mode.late.number, ["-m", "100", "-r", "100"])
      _ = try await site.directory.event("asked") { $0["mode"] as? String == "late" }
      let good = try Peers.caller(gateway, "call", ["-d", "300"])
      #expect(try await good.finish(within: 15) == 0, "\(good.text.suffix(1_500))")
      #expect(try await late.finish(within: 20) == 0, "\(late.text.suffix(1_500))")
      // all calls that wait for the number share one query
      #expect(site.directory.events.count { $0["event"] as? String == "asked" && $0["mode"] as? String == "late" } == 1)
      for number in 20...29 {
        let caller = try Peers.caller(gateway, "refused_503", to: "+1555700\(number)05")
        #expect(try await caller.finish(within: 15) == 0, "\(number): \(caller.text.suffix(1_500))")
      }
      #expect(try gateway.sum("trunkline_webhooks_total", "outcome=\"skipped\"") >= 1, "five failures in a row")
      alice.type("quit")
      _ = try await alice.finish(within: 5)
      try await finish(site)
    }
  }
}
