-- Uses no database, or asks for a driver and does not connect, or does.
sysbench.cmdline.options = {ask = {"ask for the driver", false}, connect = {"connect", false}}

function prepare()
   print("prepare", sysbench.opt.db_driver)
end

function event()
   if sysbench.opt.ask then
      local driver = sysbench.sql.driver()
      print("driver", driver:name(), tostring(driver))
      if sysbench.opt.connect then
         driver:connect()
      end
   end
   print("event", sysbench.rand.uniform(5, 5))
end
