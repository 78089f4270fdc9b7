import TrunklineBytes
import WebServer

/// Finds the row of a request and authenticates the client; the row's handler gets the request if the client has the row's scope.
/// The row that was checked is the row that answers. A stream that continues is checked again (`StreamLicence`).
struct AdminEndpoint: Sendable {
  let access: AdminAccess
  let routes: AdminRoutes

  func handle(_ request: HTTPRequest, at now: Instant, _ answer: @escaping HTTPRequest.Answer) {
    let match = routes.match(request.method, request.target)
    do throws(APIError) {
      try AdminAccess.checkPage(request)
      // An open row states nothing about calls; the status page requests the rest with the token.
      if case .row(let row, let arguments) = match, row.route.scope == nil {
        var request = request
        request.arguments = arguments
        return row.handler(request, answer)
      }
      let client = try access.client(of: request, at: now)
      switch match {
      case .refused(let response): answer(response)
      case .row(let row, let arguments):
        try client.check(row.route)
        var request = request
        request.client = client.name
        request.arguments = arguments
        request.spend = { [access] in access.spend(client.name, at: now) }
        let licence = access.licence(of: request, row.route)
        row.handler(request) { response in
          var response = response
          if response.stream != nil { response.licence = licence }
          answer(response)
        }
      }
    } catch {
      answer(error.response)
    }
  }
}
