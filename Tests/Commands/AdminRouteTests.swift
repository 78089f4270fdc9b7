import Foundation
import JSONWebToken
import Synchronization
import Testing
import TrunklineBytes
import TrunklinePlatform
import Yams

@testable import AppServer
@testable import WebServer
@testable import trunkline

/// The admin API's table: every operation of docs/reference/admin-api.yaml is a row and every row an operation, and no spelling
/// of a path gives a token more than its scope.
@Suite struct AdminRouteTests {
  // MARK: the document

  private struct Operation: Hashable {
    var name: String
    var method: String
    var path: String
    var scope: String
  }

  private func document() throws -> [String: Any] {
    let file = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../docs/reference/admin-api.yaml").standardized
    return try #require(try Yams.load(yaml: String(contentsOf: file, encoding: .utf8)) as? [String: Any])
  }

  @Test func `the codes of refusals are those of the document`() throws {
    var value: Any? = try document()
    for key in ["components", "schemas", "Problem", "properties", "code", "enum"] { value = (value as? [String: Any])?[key] }
    #expect(Set(value as? [String] ?? []) == Set(APIError.Code.allCases.map(\.rawValue)))
  }

  @Test func `the server's own refusals have codes of the API, and their status`() {
    for code in HTTPProblem.Code.allCases { #expect(APIError.Code(rawValue: code.rawValue)?.status == code.status, "\(code)") }
  }

  private func documented() throws -> [Operation] {
    let paths = try #require(try document()["paths"] as? [String: [String: Any]])
    return paths.flatMap { path, item in
      item.compactMap { method, value -> Operation? in
        guard method != "parameters", let operation = value as? [String: Any] else { return nil }
        return Operation(
          name: operation["operationId"] as? String ?? "none", method: method.uppercased(), path: path,
          scope: operation["x-scope"] as? String ?? "none")
      }
    }
  }

  @Test func `each operation of docs/reference/admin-api.yaml is a row of the table, and the other way round`() throws {
    let rows = AdminRow.all.map {
      Operation(
        name: $0.route.operation, method: $0.route.method.rawValue, path: $0.route.path, scope: $0.route.scope?.rawValue ?? "none"
      )
    }
    let operations = try documented()
    for extra in Set(rows).subtracting(operations) { Issue.record("a row without its operation: \(extra)") }
    for extra in Set(operations).subtracting(rows) { Issue.record("an operation without its row: \(extra)") }
    #expect(Set(rows.map(\.name)).count == rows.count && operations.count == rows.count)
  }

  @Test func `no path fits two patterns, and only the pages that say nothing of a call are open`() {
    let routes = AdminRow.all.map(\.route)
    for (one, other) in routes.flatMap({ one in routes.map { (one, $0) } }) where one.path != other.path {
      let isAmbiguous =
        one.parts.count == other.parts.count
        && zip(one.parts, other.parts).allSatisfy { one, other in
          if case .word = one, case .word = other { one == other } else { true }
        }
      #expect(!isAmbiguous, "\(one.path) and \(other.path)")
    }
    #expect(routes.filter { $0.scope == nil }.map(\.path) == ["/", "/status/{file}", "/ui/{file}", "/healthz"])
    #expect(routes.filter { $0.bodyBytes > 65_536 }.allSatisfy { $0.scope == .users })
  }

  // MARK: spellings

  /// The real table behind the real entry point, with handlers that answer with the operation's name.
  private struct Rig {
    let door: AdminEndpoint
    init() {
      door = AdminEndpoint(
        access: AdminAccess(
          APIScope.allCases.map { APIToken(name: $0.rawValue, secrets: [Redacted(Array("secret-\($0)".utf8))], scopes: [$0]) }),
        routes: AdminRoutes(
          AdminRow.all.map { row in
            AdminRoutes.Row(row.route) { request, answer in
              let arguments = request.arguments.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
              answer(.text(200, ([row.route.operation] + arguments).joined(separator: " ")))
            }
          }))
    }

    /// Status and body; 400 if the parser refuses the request.
    func ask(_ method: String, _ target: String, _ scope: APIScope?) -> (status: Int, body: String, response: HTTPResponse?) {
      guard let request = try? AdminRequest(method, target: target) else { return (400, "", nil) }
      return ask(request, scope)
    }

    func ask(_ request: AdminRequest, _ scope: APIScope?) -> (status: Int, body: String, response: HTTPResponse?) {
      var request = request
      request.authorization = scope.map { Redacted("Bearer secret-\($0)") }
      let answer = Mutex<HTTPResponse?>(nil)
      door.handle(request, at: Instant(nanoseconds: 1_000_000_000)) { response in answer.withLock { $0 = response } }
      guard let response = answer.withLock({ $0 }) else { return (0, "", nil) }
      let line = response.body.last == UInt8(ascii: "\n") ? response.body.dropLast() : response.body[...]
      return (response.status, String(decoding: line, as: UTF8.self), response)
    }
  }

  private static func example(_ path: String) -> String {
    "/" + path.split(separator: "/").map { $0.hasPrefix("{") ? "x1" : String($0) }.joined(separator: "/")
  }

  /// Spellings of a path that a reader could mistake for the path itself.
  private static func spellings(_ path: String) -> [String] {
    let parts = path.split(separator: "/").map(String.init)
    var out = ["/" + path, "//" + path, path + "/", path + "//", path + "/.", path + "/%2e", path + "/x/..", path + "/x/%2E%2e"]
    for head in ["/.", "/%2e", "/%2E", "/x/..", "/x/%2e%2E", "/..", "/%2e%2e", "/%00", "/%c0%ae", "/%20", "/%2f", "/%2F", "/;"] {
      out.append(head + path)
    }
    let slashes = [
      "//", "%2f", "%2F", "%252f", "/./", "/%2e/", "/%2E/", "/x/../", "%c0%af", "%e0%80%af", "%5c", "\\", "/%00/", ";/",
    ]
    for index in parts.indices {
      for slash in slashes {
        out.append("/" + parts[..<index].joined(separator: "/") + slash + parts[index...].joined(separator: "/"))
      }
      for letter in parts[index].utf8.indices {
        let code = parts[index].utf8[letter]
        for hex in [String(format: "%%%02x", code), String(format: "%%%02X", code), String(format: "%%25%02x", code)] {
          var spelled = Array(parts[index].utf8.map { String(UnicodeScalar($0)) })
          spelled[parts[index].utf8.distance(from: parts[index].utf8.startIndex, to: letter)] = hex
          out.append("/" + (parts[..<index] + [spelled.joined()] + parts[(index + 1)...]).joined(separator: "/"))
        }
      }
    }
    out += [path.uppercased(), path + "%00", path + "%20", path + ";x=1", path + "?", path + "?//", path + "#", path + "%23"]
    out += [path + String(repeating: "/a", count: 200), String(repeating: "/a", count: 200) + path]
    out += [path + String(repeating: "/", count: 200), String(repeating: "/.", count: 200) + path]
    return out
  }

  /// The routes that the most lenient server would choose: decoded until nothing is left to decode, without empty and relative
  /// parts.
  private static func lenient(_ target: String) -> [AdminRoute] {
    var path = target.split(separator: "?", omittingEmptySubsequences: false).first.map(String.init) ?? ""
    for _ in 0..<4 { path = path.removingPercentEncoding ?? path }
    var parts: [String] = []
    for part in path.replacing("\\", with: "/").lowercased().split(separator: "/") where part != "." {
      if part == ".." { _ = parts.popLast() } else { parts.append(part.split(separator: ";").first.map(String.init) ?? "") }
    }
    return AdminRow.all.map(\.route).filter { route in
      route.parts.count == parts.count
        && zip(route.parts, parts).allSatisfy { if case .word(let word) = $0 { word == $1 } else { true } }
    }
  }

  @Test(arguments: AdminRow.all.map(\.route.operation))
  func `an operation is for its scope`(operation: String) throws {
    let (rig, route) = (Rig(), try #require(AdminRow.all.first { $0.route.operation == operation }?.route))
    let plain = Self.example(route.path)
    for scope in APIScope.allCases {
      let wanted = route.scope == nil || route.scope == scope ? 200 : 403
      #expect(rig.ask(route.method.rawValue, plain, scope).status == wanted, "\(route.method) \(plain) with \(scope)")
    }
    #expect(rig.ask(route.method.rawValue, plain, nil).status == (route.scope == nil ? 200 : 401))
  }

  /// All methods in one case, so that operations of one path are tested together.
  @Test(arguments: Set(AdminRow.all.map(\.route.path)).sorted())
  func `no spelling of a path gives a token more than its scope`(path: String) throws {
    let rig = Rig()
    var asked = 0
    let isOpen = AdminRow.all.contains { $0.route.path == path && $0.route.scope == nil }
    for spelling in Self.spellings(Self.example(path)) {
      for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "get"] {
        // the parser answers 400 before any handler is called
        guard let request = try? AdminRequest(method, target: spelling) else { continue }
        asked += 1
        for scope in APIScope.allCases {
          let answer = rig.ask(request, scope)
          guard answer.status == 200 else { continue }
          let name = answer.body.split(separator: " ").first.map(String.init)
          let own = try #require(AdminRow.all.first { $0.route.operation == name }?.route)
          #expect(own.scope == nil || own.scope == scope, "\(method) \(spelling) with \(scope): \(answer.body)")
          #expect(own.methods.contains(method), "\(method) \(spelling)")
          for other in Self.lenient(spelling) where other.methods.contains(method) {
            #expect(
              other.scope == nil || other.scope == scope, "\(method) \(spelling) with \(scope) could be read as \(other.path)")
          }
        }
        let status = rig.ask(request, nil).status
        #expect([400, 401].contains(status) || isOpen && status == 200, "\(method) \(spelling) without a token: \(status)")
      }
    }
    #expect(asked > 100, "the parser took only \(asked)")
  }

  @Test(arguments: [
    "//v1/traces/1", "/%2fv1/directory", "/v1//traces/1", "/./v1/traces/1", "/v1/%2e/traces/1", "/%2e%2e/v1/traces/1",
    "/v1/traces/",
    "/%761/traces/1", "/v1/trace%73/1", "/v1%2ftraces%2f1", "/v1/traces/..", "/v1/traces/%2e%2e", "//", "/v1/directory/",
  ])
  func `a path that could be read as another one is 400 with a token, and 401 without one`(path: String) {
    let rig = Rig()
    for scope in APIScope.allCases { #expect(rig.ask("GET", path, scope).status == 400, "\(path) with \(scope)") }
    #expect(rig.ask("GET", path, nil).status == 401)
  }

  @Test func `an argument is decoded once, and may have a slash`() {
    let rig = Rig()
    #expect(rig.ask("DELETE", "/v1/users/a%2Fb/data", .users).body == "eraseUser user=a/b")
    #expect(rig.ask("DELETE", "/v1/users/a%252Fb/data", .users).body == "eraseUser user=a%2Fb")
    #expect(rig.ask("PUT", "/v1/directory/user:+4930123", .users).body == "replaceDirectory scope=user:+4930123")
    #expect(rig.ask("GET", "/v1/trunks/revoke%20d", .read).body == "getTrunk trunk=revoke d")
  }

  @Test func `an unknown path or method is refused with the known ones`() {
    let rig = Rig()
    let unknown = rig.ask("GET", "/v1/nothing", .read)
    #expect(unknown.status == 404 && unknown.body.contains("/v1/calls/{call}/hangup"))
    #expect(rig.ask("GET", "/v2/calls", .admin).status == 404 && rig.ask("POST", "/nothing", .admin).status == 404)
    let wrong = rig.ask("PATCH", "/v1/directory/user:a", .read)
    #expect(wrong.status == 405 && wrong.response?.headers.first { $0.name == "Allow" }?.value == "PUT, POST, DELETE")
    #expect(rig.ask("DELETE", "/v1/calls", .read).response?.headers.first { $0.name == "Allow" }?.value == "GET, HEAD, POST")
    #expect(rig.ask("HEAD", "/v1/traces/1", .admin).status == 405 && rig.ask("HEAD", "/v1/calls", .read).status == 200)
  }

  @Test func `a field of a query is decoded once; one that is empty or there twice is refused`() throws {
    func user(_ query: String) -> Result<String?, APIError> {
      Result { () throws(APIError) in try (try? AdminRequest("GET", target: "/v1/devices" + query))?.queryValue("user") }
    }
    #expect(user("") == .success(nil) && user("?device=a") == .success(nil))
    #expect(user("?user=%2B4930123") == .success("+4930123") && user("?user=+4930123") == .success("+4930123"))
    #expect(user("?user=a%26device%3Db&device=c") == .success("a&device=b"))
    #expect(user("?%75ser=%2541") == .success("%41"))
    for query in ["?user=", "?user", "?user=a&user=b", "?user=a&%75ser=b"] {
      guard case .failure(let error) = user(query) else {
        Issue.record("\(query) was taken")
        continue
      }
      #expect(error.code == .badRequest)
    }
  }
}
