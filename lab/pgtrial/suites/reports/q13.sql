-- How many buyers have made how many purchases, those apart that are about samples and refunds?
select purchases, count(*) as buyers
from (
    select b.buyer_id, count(p.purchase_id) as purchases
    from buyers b
    left join purchases p on p.buyer_id = b.buyer_id and p.remark not like '%sample%refund%'
    group by b.buyer_id
) as counted
group by purchases
order by buyers desc, purchases desc;
