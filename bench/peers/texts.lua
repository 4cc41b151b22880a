-- What wrk sends: {"inputs": TEXT} to /predict, the texts of a file in an order drawn with a fixed seed.
local bodies = {}
for line in io.lines(os.getenv("TEXTS")) do
  local text = line:gsub('[%c\\"]', ' ')
  if text:find('%S') then bodies[#bodies + 1] = '{"inputs": "' .. text .. '"}' end
end
math.randomseed(42)
wrk.headers["Content-Type"] = "application/json"
request = function()
  return wrk.format("POST", "/predict", nil, bodies[math.random(#bodies)])
end
-- One line: requests a second, p50 and p99 in ms, answers that were no 200.
done = function(summary, latency)
  io.write(string.format("RESULT %.1f %.2f %.2f %d\n", summary.requests / summary.duration * 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout))
end
