import Foundation
import Testing

extension Interop {
  /// Numbers as they are dialled in many regions, and what sipp is called with.
  @Suite(
    .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"), .serialized)
  struct DialledNumberTests {
    private static let token = "0123456789abcdef0123456789abcdef"
    private static let regions = [
      "DE", "AT", "CH", "FR", "IT", "ES", "GB", "HU", "BY", "RU", "US", "CA", "MX", "BR", "AR", "AU", "JP", "SG", "IN", "KE",
      "NG", "CI", "GA",
      "MN", "TM",
    ]

    private func gateway(_ regions: [String], route: String = "", trunk: String = "") async throws -> GatewayUnderTest {
      let users = regions.enumerated().map { index, region in
        // allow and max_calls are not of emergency calls
        "{ id: \(region.lowercased()), numbers: [ \"+1555123\(1_000 + index)\" ], country: \(region), calls_per_hour: 100 }"
      }
      return try await GatewayUnderTest(
        [
          "users: [ \(users.joined(separator: ", ")) ]",
          "admin: { tokens: [ { name: program, token_file: jwt.key, scopes: [ read, calls ], per_second: 1000 } ] }",
          "routes: { inbound: [ { trunk: carrier, to: users } ], outbound: [ { prefix: \"+\", trunk: carrier }\(route) ] }",
        ], trunk: trunk, bearer: Self.token)
    }

    @Test func `200 calls of users in 25 regions: each Request-URI is the number that libphonenumber reads`() async throws {
      let gateway = try await gateway(Self.regions)
      let log = gateway.folder + "/numbers.log"
      let carrier = try await Peers.callee(gateway, "busy", ["-m", "200", "-trace_msg", "-message_file", log])
      let dialler = try Peers.python(
        "dialler", "dial_numbers.py",
        ["--admin", "\(gateway.admin)", "--app", "\(gateway.app)", "--key", "jwt.key", "--calls", "200"] + Self.regions, gateway)
      #expect(try await dialler.finish(within: 90) == 0, "\(dialler.text.suffix(6_000)) \(gateway.process.text.suffix(6_000))")
      #expect(try await carrier.finish(within: 30) == 0, "\(carrier.text.suffix(6_000))")
      let expected = dialler.events.compactMap { event -> String? in
        guard event["event"] as? String == "dialled", let user = event["user"] as? String,
          let number = event["expected"] as? String,
          let index = Self.regions.firstIndex(of: user.uppercased())
        else { return nil }
        return "+1555123\(1_000 + index) \(number)"
      }
      let called = try Self.invites(in: log).map { "\($0.from) \($0.uri)" }
      #expect(
        expected.count == 200 && called.sorted() == expected.sorted(), "\(Set(called).symmetricDifference(expected).sorted())")
      try await gateway.finish()
    }

    @Test(arguments: [("CH", "144"), ("FR", "15"), ("IT", "113"), ("AT", "1-3-3")])
    func `an emergency number of the user's region takes the emergency route with the app's location, past allow and limits`(
      region: String, number: String
    ) async throws {
      let gateway = try await GatewayUnderTest(
        [
          "users: [ { id: alice, numbers: [ \"+15551231000\" ], country: \(region), allow: [ \"+49\" ], max_calls: 0, calls_per_hour: 0 } ]",
          "routes: { outbound: [ { prefix: \"+\", trunk: carrier }, { prefix: \"\", trunk: carrier, emergency: true } ] }",
        ], trunk: "location: true")
      let plain = number.filter { $0 != "-" }
      var script = SippScript.callee(containing: [
        "INVITE sip:\(plain)@", "Geolocation: <cid:", "Geolocation-Routing: yes", "multipart/mixed", "application/sdp",
        "application/pidf\\+xml", "<gml:pos>47.37 8.54</gml:pos>",
      ])
      script.answers(486)
      script.awaits("ACK")
      let carrier = try await Peers.callee(gateway, try script.file(gateway, "help"))
      let location = "<presence><gp:geopriv><gml:pos>47.37 8.54</gml:pos></gp:geopriv></presence>"
      let phone = try await Peers.phone(gateway, ["--call", number, "--location", location, "--calls", "1"])
      #expect(try await phone.finish(within: 25) == 0, "\(phone.text)")
      #expect(try await carrier.finish(within: 10) == 0, "\(carrier.text.suffix(3_000))")
      #expect(try await gateway.records(1).first?["to"] as? String == plain)
      try await gateway.finish()
    }

    @Test(arguments: [("CH", "144"), ("FR", "18"), ("CN", "120"), ("DE", "+112")])
    func `without an emergency route it is refused, and no INVITE leaves`(region: String, number: String) async throws {
      let gateway = try await GatewayUnderTest([
        "users: [ { id: alice, numbers: [ \"+15551231000\" ], country: \(region) } ]",
        "routes: { outbound: [ { prefix: \"\", trunk: carrier } ] }",
      ])
      let phone = try await Peers.phone(gateway, ["--call", number, "--calls", "1"])
      #expect(try await phone.finish(within: 25) == 0, "\(phone.text)")
      let refusal = phone.events.first { $0["event"] as? String == "err" }
      #expect(refusal?["code"] as? String == "emergency", "\(phone.text)")
      #expect(try gateway.sum("trunkline_sip_requests_total", "direction=\"out\"") == 0 && gateway.records.isEmpty)
      try await gateway.finish()
    }

    /// From and Request-URI of each INVITE that sipp has written down, once for a call.
    private static func invites(in log: String) throws -> [(from: String, uri: String)] {
      let text = try String(contentsOfFile: log, encoding: .utf8).replacingOccurrences(of: "\r", with: "")
      var seen: Set<Substring> = []
      return text.components(separatedBy: "INVITE sip:").dropFirst().compactMap { message in
        let lines = message.split(separator: "\n")
        guard let uri = lines.first?.prefix(while: { $0 != "@" }),
          let from = lines.first(where: { $0.hasPrefix("From:") })?.components(separatedBy: "sip:").last?.prefix(while: {
            $0 != "@"
          }),
          let call = lines.first(where: { $0.hasPrefix("Call-ID:") }), seen.insert(call).inserted
        else { return nil }
        return (String(from).replacingOccurrences(of: "%2B", with: "+"), String(uri).replacingOccurrences(of: "%2B", with: "+"))
      }
    }
  }
}
