-- What a decision on this alert would rest on now. Changes nothing.
-- ARGV: 3 source 4 fingerprint 5 plan (JSON). Returns JSON.
return view(cjson.decode(ARGV[5]), ARGV[3], ARGV[4])
