-- What HAProxy's own rules cannot do: admission, the choice of a replica by its work, and telling what is held.
-- One Lua state for all threads: HAProxy runs it under one lock, and nothing here yields between reading and writing a
-- count. Whatever fails here leaves the request to plain balancing.

local UNLIMITED = 1000000
local REQUEST_COST_TOKENS = 64   -- what a request in flight weighs beside its prompt, as in the simulator
local LOAD_BOUND = 1.25          -- what a prompt token not in a replica's cache weighs, as in the simulator
local BYTES_PER_TOKEN = 4
local CHUNK_BYTES = 256          -- prefixes are told apart in chunks of about 64 tokens
local MOST_CHUNKS = 256
local MOST_PREFIXES = 65536      -- remembered in each of two generations
local STATUS_AGE_S = 0.2
local RATE_OVER_S = 10           -- time constant of the completion rate
local RATE_AFTER_S = 2           -- seconds of queueing before the rate is believed
local LONGEST_RETRY_S = 60
local COMMANDS = { "show info", "show map choices.map", "show map numbers.map", "show servers state", "show stat" }

local numbers
local replicas, by_name = {}, {}
local under_care = 0             -- requests admitted and not yet ended
local first = 0                  -- ties go round
local looked_s, alive = -1, 0
local rate = { at_s = nil, queued = false, events = 0, weight = 0 }
local young, old, remembered = {}, {}, 0
local complained_s = -60

local function now_s()
  local now = core.now()
  return now.sec + now.usec / 1e6
end

local function number(name, default)
  return tonumber(numbers:lookup(name)) or default
end

local function guarded(body)
  return function(...)
    local fine, problem = pcall(body, ...)
    if not fine and now_s() - complained_s >= 60 then
      complained_s = now_s()
      core.Alert("flashvector.lua: " .. tostring(problem))
    end
  end
end

core.register_init(function()
  numbers = Map.new("numbers.map", Map._str)
  for name in pairs(core.backends["replicas"].servers) do
    replicas[#replicas + 1] = { name = name, in_flight = 0, tokens = 0, up = true }
  end
  table.sort(replicas, function(a, b) return a.name < b.name end)
  for i, replica in ipairs(replicas) do
    replica.bit = 1 << (i - 1)
    by_name[replica.name] = replica
  end
end)

-- Replicas ---------------------------------------------------------------------------------------------------------

local function look(time_s)
  if time_s - looked_s < STATUS_AGE_S then return end
  looked_s, alive = time_s, 0
  for _, replica in ipairs(replicas) do
    local status = core.backends["replicas"].servers[replica.name]:get_stats().status
    replica.up = status:sub(1, 2) == "UP" or status:sub(1, 8) == "no check"
    if replica.up or status:sub(1, 5) == "DRAIN" then alive = alive + 1 end
  end
end

-- How many more requests the gateway may send to the replica; 0 when it takes none.
local function room(replica, server)
  if not replica.up or server:is_draining() == 1 then return 0 end
  local cap = server:get_maxconn()
  return (cap == 0 and UNLIMITED or cap) - replica.in_flight
end

-- Requests that do not run yet: beyond an engine's slots, or without a replica that has a free one.
local function waiting(servers)
  local beyond, free, placed = 0, 0, 0
  for _, replica in ipairs(replicas) do
    local slots = number("slots." .. replica.name, UNLIMITED)
    placed = placed + replica.in_flight
    beyond = beyond + math.max(0, replica.in_flight - slots)
    free = free + math.max(0, math.min(slots - replica.in_flight, room(replica, servers[replica.name])))
  end
  return beyond + math.max(0, under_care - placed - free)
end

local function servers_now(txn)
  local backend = core.backends["policy_" .. (txn:get_var("txn.policy") or "round_robin")]
  return (backend or core.backends["policy_round_robin"]).servers
end

-- Completions per second, over the time in which something waited: only then do they tell what the engines can do. ----

local function tick(time_s, servers, completed)
  local passed_s = rate.at_s and time_s - rate.at_s or 0
  rate.at_s = time_s
  if rate.queued then
    local kept = math.exp(-passed_s / RATE_OVER_S)
    rate.events = rate.events * kept + (completed and 1 / RATE_OVER_S or 0)
    rate.weight = rate.weight * kept + 1 - kept
  end
  rate.queued = waiting(servers) > 0
end

-- nil while too little was seen.
local function completions_per_s()
  if rate.weight < 1 - math.exp(-RATE_AFTER_S / RATE_OVER_S) then return nil end
  return rate.events / rate.weight
end

-- Admission --------------------------------------------------------------------------------------------------------

local function prompt_tokens(txn)
  return (tonumber(txn.f:req_body_size()) or 0) / BYTES_PER_TOKEN
end

local function wait_limit_s(txn, is_batch)
  if is_batch then return number("batch_ttft_limit_s", UNLIMITED) end
  return number("ttft_limit_s", UNLIMITED) + number("ttft_limit_s_per_prompt_token", 0) * prompt_tokens(txn)
end

local function refuse(txn, reason, wait_s)
  txn:set_var("txn.retry_after", math.max(1, math.min(LONGEST_RETRY_S, math.ceil(wait_s or 1))))
  txn:set_var("txn.refused", reason)
end

core.register_action("admit", { "http-req" }, guarded(function(txn)
  local per_replica = number("queue_limit_requests", UNLIMITED)
  local ratio = number("deadline_shedding_ratio", UNLIMITED)
  if per_replica >= UNLIMITED and ratio >= UNLIMITED then return end
  local time_s, servers = now_s(), servers_now(txn)
  look(time_s)
  tick(time_s, servers, false)
  local queued, per_s = waiting(servers), completions_per_s()
  local wait_s = per_s and queued > 0 and math.min(queued / per_s, UNLIMITED) or nil
  local is_batch = (txn:get_var("txn.lane") or ""):sub(1, 5) == "batch"
  if not is_batch and per_replica < UNLIMITED and queued >= per_replica * math.max(1, alive) then
    refuse(txn, "queue_limit", wait_s)
  elseif wait_s and ratio < UNLIMITED and wait_s > ratio * wait_limit_s(txn, is_batch) then
    refuse(txn, "deadline", wait_s)
  end
end))

-- Choice of a replica ----------------------------------------------------------------------------------------------

-- Hashes of the prompt's prefixes, the shortest first. The text is compared as it was sent, from its first message on.
local function prefixes(txn)
  local body = txn.f:req_body() or ""
  local from = body:find('"messages"', 1, true) or body:find('"prompt"', 1, true)
  local found, hash = {}, 0
  if not from then return found end
  for i = 1, math.min(MOST_CHUNKS, (#body - from + 1) // CHUNK_BYTES) do
    local chunk = body:sub(from + (i - 1) * CHUNK_BYTES, from + i * CHUNK_BYTES - 1)
    hash = txn.c:xxh64(chunk, hash & 0x7fffffff)
    found[i] = hash
  end
  return found
end

local function seen_by(hash)
  return young[hash] or old[hash] or 0
end

local function remember(found, replica)
  for _, hash in ipairs(found) do
    if not young[hash] then remembered = remembered + 1 end
    young[hash] = seen_by(hash) | replica.bit
  end
  if remembered > MOST_PREFIXES then young, old, remembered = {}, young, 0 end
end

local function cached_tokens(found, replica)
  local n = 0
  while found[n + 1] and seen_by(found[n + 1]) & replica.bit ~= 0 do n = n + 1 end
  return n * CHUNK_BYTES / BYTES_PER_TOKEN
end

local function load_of(replica, policy, prompt, found)
  if policy == "session_hash" then return replica.in_flight + 1 end
  local load = replica.tokens + REQUEST_COST_TOKENS * replica.in_flight + 1
  if policy == "prefix_aware" then load = load + LOAD_BOUND * math.max(0, prompt - cached_tokens(found, replica)) end
  return load
end

local function least(servers, policy, prompt, found)
  local best, best_load
  first = (first + 1) % #replicas
  for k = 0, #replicas - 1 do
    local replica = replicas[(first + k) % #replicas + 1]
    local server = servers[replica.name]
    if room(replica, server) > 0 then
      local load = load_of(replica, policy, prompt, found) / math.max(1, server:get_weight())
      if not best or load < best_load - 1e-9 then best, best_load = replica, load end
    end
  end
  return best
end

local function left_to_haproxy(txn, policy)
  if txn:get_var("txn.apart") or policy == "round_robin" or policy == "least_connections" then return true end
  return policy == "session_hash" and (txn.f:req_hdr("x-session-id") or "") ~= ""
end

core.register_action("choose", { "http-req" }, guarded(function(txn)
  local policy = txn:get_var("txn.policy")
  txn:set_var("txn.counted", 1)
  if left_to_haproxy(txn, policy) then return end
  look(now_s())
  local found = policy == "prefix_aware" and prefixes(txn) or {}
  local best = least(servers_now(txn), policy, prompt_tokens(txn), found)
  if not best then return end
  remember(found, best)
  txn:set_var("txn.server", best.name)
end))

-- Counts: a filter is told of the end of every request, also of those whose client or server has gone. ---------------

local Outstanding = { id = "FlashVector outstanding requests", flags = filter.FLT_CFG_FL_HTX }
Outstanding.__index = Outstanding

function Outstanding:new()
  return setmetatable({ counted = false, ended = false, tokens = 0 }, Outstanding)
end

function Outstanding:release_tokens()
  if self.replica then self.replica.tokens = self.replica.tokens - self.tokens end
  self.tokens = 0
end

function Outstanding:place(name)
  local replica = by_name[name]
  if self.replica == replica then return end
  if self.replica then
    self.replica.in_flight = self.replica.in_flight - 1
    self.replica.tokens = self.replica.tokens - self.tokens
  end
  self.replica = replica
  if replica then
    replica.in_flight = replica.in_flight + 1
    replica.tokens = replica.tokens + self.tokens
  end
end

Outstanding.start_analyze = guarded(function(self, txn, channel)
  if not channel:is_resp() or not self.counted then return end
  self:place(txn.f:srv_name())
  filter.register_data_filter(self, channel)
end)

Outstanding.http_headers = guarded(function(self, txn, message)
  if message:is_resp() then
    self:place(txn.f:srv_name())
    self.failed = (tonumber(message:get_stline().code) or 0) >= 500
  elseif txn:get_var("txn.counted") and not self.counted then
    self.counted = true
    self.tokens = prompt_tokens(txn)
    under_care = under_care + 1
    local chosen = txn:get_var("txn.server")
    if chosen then self:place(chosen) end
  end
end)

Outstanding.http_payload = guarded(function(self, txn, message)
  if message:input() == 0 then return end   -- called for the headers alone as well
  self:release_tokens()
  filter.unregister_data_filter(self, message.channel)
end)

Outstanding.end_analyze = guarded(function(self, txn)
  if not self.counted or self.ended then return end
  self.ended = true
  local served = self.replica ~= nil and not self.failed
  self:release_tokens()
  self:place(nil)
  under_care = under_care - 1
  tick(now_s(), servers_now(txn), served)
end)

core.register_filter("outstanding", Outstanding, function(self) return self end)

-- What is held, for reading only: the answers to fixed commands, and the counts. -------------------------------------

local function answer(command)
  local socket = core.tcp()
  socket:settimeout(5)
  if not socket:connect("unix@read.sock") then error("read.sock does not answer") end
  socket:send(command .. "\n")
  local text, problem = socket:receive("*a")
  socket:close()
  return text or error("read.sock broke off: " .. tostring(problem))
end

local function counts()
  local lines = { "under_care " .. under_care }
  for _, replica in ipairs(replicas) do
    lines[#lines + 1] = string.format("in_flight.%s %d", replica.name, replica.in_flight)
    lines[#lines + 1] = string.format("outstanding_tokens.%s %.0f", replica.name, replica.tokens)
  end
  local per_s = completions_per_s()
  if per_s then lines[#lines + 1] = string.format("completions_per_s %.6g", per_s) end
  return table.concat(lines, "\n") .. "\n"
end

core.register_service("held", "http", function(applet)
  local parts = { "== counts\n", counts() }
  for _, command in ipairs(COMMANDS) do
    parts[#parts + 1] = "== " .. command .. "\n" .. answer(command)
  end
  local body = table.concat(parts)
  applet:set_status(200)
  applet:add_header("content-type", "text/plain")
  applet:add_header("content-length", #body)
  applet:start_response()
  applet:send(body)
end)
