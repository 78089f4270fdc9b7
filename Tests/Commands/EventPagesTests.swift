import AppServer
import Foundation
import Testing

@testable import trunkline

/// Refusals of `/v1/events`, of its pages and of its stream; what it answers else: `EventTests`.
@Suite struct EventPagesTests {
  private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("pages-\(UUID().uuidString)").path

  private struct Problem: Decodable { var title, detail, code: String, status: Int }

  private func request(_ query: String, isStream: Bool = false, last: String? = nil) throws -> AdminRequest {
    var request = try AdminRequest("GET", "/v1/events?" + query)
    if isStream { request.fields = [("accept", "text/event-stream")] }
    if let last { request.fields.append(("last-event-id", last)) }
    return request
  }

  private func expect(
    _ code: APIError.Code, _ response: AdminResponse, _ location: SourceLocation = #_sourceLocation
  ) {
    let problem = try? JSONDecoder().decode(Problem.self, from: Data(response.body))
    #expect(response.status == code.status && problem?.status == code.status, sourceLocation: location)
    #expect(problem?.code == code.rawValue && problem?.detail.isEmpty == false, sourceLocation: location)
    #expect(response.contentType == "application/problem+json" && response.stream == nil, sourceLocation: location)
  }

  @Test(arguments: [false, true]) func `refusals are problems with a code, also of a stream`(isStream: Bool) throws {
    expect(.unknownPage, try EventPages(folder: nil).answer(request("", isStream: isStream)))
    expect(.overload, try EventPages(folder: folder).answer(request("", isStream: isStream)))
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try Data("0123abcd\n".utf8).write(to: URL(fileURLWithPath: folder + "/epoch"))
    let pages = EventPages(folder: folder)
    for query in [
      "after=x", "limit=0", "limit=1001", "kinds=call.nothing", "until=1", #"kinds=""#, "kinds=,", "kinds=call.ended,",
      "limit=%2B5", "limit=+5", "after=", "limit=1&limit=2",
    ] {
      expect(.badRequest, try pages.answer(request(query, isStream: isStream)))
    }
    for query in ["after=00000000-1", "after=0123abcd-5"] { expect(.gone, try pages.answer(request(query, isStream: isStream))) }
    let response = try pages.answer(request("after=latest", isStream: isStream))
    #expect(response.status == 200 && (response.stream != nil) == isStream)
  }

  @Test func `a stream goes on behind Last-Event-ID, and one that is none is refused`() throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try Data("0123abcd\n".utf8).write(to: URL(fileURLWithPath: folder + "/epoch"))
    let pages = EventPages(folder: folder)
    expect(.badRequest, try pages.answer(request("", isStream: true, last: "x")))
    expect(.gone, try pages.answer(request("", isStream: true, last: "00000000-1")))
    #expect(try pages.answer(request("", isStream: true, last: "0123abcd-0")).status == 200)
  }
}
