-- Performs the seeks, plays to the end, and prints the last position and the duration.
local seeks = {}
for second in string.gmatch(mp.get_opt("seeks") or "", "[^/]+") do seeks[#seeks + 1] = tonumber(second) end

local function finish(reason)
    io.stdout:write(string.format("ended %s %.3f %.3f\n", reason,
        mp.get_property_number("time-pos") or -1, mp.get_property_number("duration") or -1))
    io.stdout:flush()
    mp.command("quit")
end

-- Sent after the first frame, and after each seek.
mp.register_event("playback-restart", function()
    if #seeks > 0 then
        mp.commandv("seek", table.remove(seeks, 1), "absolute+exact")
    else
        mp.set_property_bool("pause", false)
    end
end)
mp.observe_property("eof-reached", "bool", function(_, reached)
    if reached and #seeks == 0 then finish("eof") end
end)
mp.register_event("end-file", function(event)
    io.stdout:write("ended ", event.reason, " -1 -1 ", event.file_error or "", "\n")
    io.stdout:flush()
    mp.command("quit")
end)
