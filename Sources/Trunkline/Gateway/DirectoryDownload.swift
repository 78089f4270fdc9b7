import AppServer
import AppSessions
import Foundation
import HTTP
import Store
import TrunklineAppProtocol
import WebServer

/// Directories by HTTP for devices, at the app port.
///
///     GET /v1/directory?after=NUMBER&version=V     the next contacts after NUMBER; without it the first
enum DirectoryDownload {
  /// The content of `dir.full`, and the cursor of the next page.
  private struct Body: Encodable {
    var version: Int
    var of: String?
    var block: [Int64]
    var identify: [DirectoryPart.Name]
    var next: Int64?
  }
  private struct Changed: Encodable {
    var code = "changed"
    var version: Int
  }

  static func answer(
    _ request: HTTPRequest, of device: DeviceKey, accounts: [String], by service: DirectoryService,
    _ answer: @escaping @Sendable (HTTPResponse) -> Void
  ) {
    let (start, asked): (Int64?, Int?)
    do throws(APIError) {
      (start, asked) = (try number("after", of: request), try number("version", of: request))
    } catch {
      return answer(error.response)
    }
    let wanted = request.first("if-none-match")
    service.page(of: device, accounts: accounts, version: asked, after: start) { result in
      switch result {
      case .failure(.busy): answer(APIError(.overload, "busy").response)
      case .failure: answer(APIError(.server, "the directory cannot be read").response)
      case .success(let page):
        let now = page.part.version
        if let asked, asked != now { return answer(.json(412, Changed(version: now))) }
        // in a cluster the version alone does not identify the directories
        let tag = "\"\(now)-\(asked == nil ? 0 : start ?? 0)\(page.of.map { "-" + $0 } ?? "")\""
        let headers = [("ETag", tag), ("Cache-Control", "private, no-cache")]
        if wanted == tag { return answer(HTTPResponse(304, contentType: "application/json", headers: headers, body: [])) }
        var response = AdminResponse.json(
          200, Body(version: now, of: page.of, block: page.part.block ?? [], identify: page.part.identify ?? [], next: page.next))
        response.headers = headers
        answer(response)
      }
    }
  }
}

extension DirectoryDownload {
  private static func number<Value: FixedWidthInteger>(_ name: String, of request: HTTPRequest) throws(APIError) -> Value? {
    guard let text = try request.queryValue(name) else { return nil }
    guard let value = Value(text) else { throw APIError(.badRequest, "after and version are numbers") }
    return value
  }
}
