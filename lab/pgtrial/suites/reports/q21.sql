-- Which suppliers of a nation were the only late ones of purchases that had several suppliers?
select s.supplier, count(*) as kept_waiting
from suppliers s
join nations n on n.nation_id = s.nation_id
join lines l on l.supplier_id = s.supplier_id
join purchases p on p.purchase_id = l.purchase_id
where n.nation = 'Westria'
  and p.state = 'closed'
  and l.received_on > l.promised_on
  and exists (
      select 1
      from lines other
      where other.purchase_id = l.purchase_id
        and other.supplier_id <> l.supplier_id
  )
  and not exists (
      select 1
      from lines other
      where other.purchase_id = l.purchase_id
        and other.supplier_id <> l.supplier_id
        and other.received_on > other.promised_on
  )
group by s.supplier_id, s.supplier
order by kept_waiting desc, s.supplier_id
limit 100;
