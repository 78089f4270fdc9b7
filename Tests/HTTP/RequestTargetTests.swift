import HTTP
import Testing

/// A target is divided first and decoded afterwards, each part once.
@Suite struct RequestTargetTests {
  private func target(_ text: String) throws -> RequestTarget { try RequestTarget(text.utf8) }

  @Test func `an encoded separator divides nothing`() throws {
    let read = try target("/v1/users/a%2Fb/data?user=a%26device%3Db&x=%3D=1")
    #expect(read.segments.map(\.text) == ["v1", "users", "a/b", "data"])
    #expect(read.segments.map(\.raw) == ["v1", "users", "a%2Fb", "data"])
    #expect(read.pairs == [.init(name: "user", value: "a&device=b"), .init(name: "x", value: "==1")])
    #expect(read.path == "/v1/users/a%2Fb/data" && read.query == "user=a%26device%3Db&x=%3D=1")
  }

  @Test(
    arguments: [
      ("/phone/v1/connect", "/v1/connect", ""), ("/phone", "/", ""), ("/phone/", "/", ""), ("/phone/?a=b", "/", "a=b"),
      ("/phone/a%2Fb?x=1", "/a%2Fb", "x=1"), ("/phones/v1", nil, ""), ("/v1/phone", nil, ""), ("/Phone/v1", nil, ""),
      ("/%70hone/v1", nil, ""), ("/phone//v1", "//v1", ""),
    ] as [(String, String?, String)])
  func `what is below a path is the rest of it`(text: String, path: String?, query: String) throws {
    let below = try target(text).below("/phone")
    #expect(below?.path == path && (below?.query ?? "") == query)
  }

  @Test func `each part is decoded once, and a plus is a plus`() throws {
    let read = try target("/%2532%2f?user=+4930123&other=%2B4930123&third=%252B&%75=%C3%A9")
    #expect(read.segments.map(\.text) == ["%32/"])
    #expect(read.pairs.map(\.value) == ["+4930123", "+4930123", "%2B", "é"])
    #expect(read.pairs.last?.name == "u")
  }

  @Test(arguments: [
    ("/", []), ("//", ["", ""]), ("/a/", ["a", ""]), ("//a", ["", "a"]), ("/./a", [".", "a"]), ("/%2e/a", [".", "a"]),
    ("/%2E%2e/a", ["..", "a"]), ("/a;b/c", ["a;b", "c"]), ("/a\\b", ["a\\b"]), ("*", ["*"]),
  ])
  func `nothing is taken away or folded`(path: String, segments: [String]) throws {
    let read = try target(path)
    #expect(read.segments.map(\.text) == segments)
    #expect(read.segments.map(\.isRelative) == segments.map { ["", ".", ".."].contains($0) })
  }

  @Test func `a query's empty parts are none, and what has no equals sign has an empty value`() throws {
    #expect(try target("/?").pairs.isEmpty && target("/?&&").pairs.isEmpty)
    #expect(
      try target("/?a&b=&=c").pairs == [.init(name: "a", value: ""), .init(name: "b", value: ""), .init(name: "", value: "c")])
  }

  @Test(arguments: [
    "/%", "/%4", "/%4g", "/%00", "/?%00", "/%c0%af", "/%C0%AE", "/%e0%80%af", "/%f0%80%80%af", "/%ff", "/?a=%80", "/%ed%a0%80",
    "/" + String(repeating: "a/", count: 200), "/?" + String(repeating: "a&", count: 200),
  ])
  func `what cannot be decoded, and what has too many parts, is refused with 400`(text: String) {
    do {
      _ = try RequestTarget(text.utf8)
      Issue.record("\(text.prefix(40)) was taken")
    } catch {
      #expect(error.status == 400)
    }
  }
}
